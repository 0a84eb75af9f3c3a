"""A study up to what its nodes release, by the messages of its coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.protocols import coordinator_of, make_node, opened_by, run_own_steps
from tests.support.studies import Entropy
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.report import Report


def released_by(
    study: Study, tables: Sequence[Any], counts: Sequence[int]
) -> tuple[Any, list[m.Released], list[Any]]:
    """A session before its last step. Args: tables, counts: of every node's records.

    Returns: the coordinator's side, what the nodes released, and the nodes' sides.
    """
    coordinator = coordinator_of(study)
    nodes = [
        make_node(node.name, study, table, count, Entropy(node.name))
        for node, table, count in zip(study.nodes, tables, counts, strict=True)
    ]
    agree = coordinator.agree([m.Accepted(study.hash, node.accept()) for node in nodes])
    begin = coordinator.begin(opened_by(nodes, agree.members))
    answers = []
    for node in nodes:
        node.begin(begin.openings)
        run_own_steps(node)
        answers.append(node.release())
    return coordinator, answers, nodes


def check_replay(report: Report, again: Any, answers: Sequence[m.Released]) -> None:
    """Stored messages give a new coordinator the same numbers, bit for bit, and no other cost."""
    assert again.agree(answers) is None
    replayed = again.replay(answers, Measured(replayed=True))
    for key in (
        "estimate",
        "noise_std",
        "low",
        "high",
        "sampling_std_bound",
        "epsilon",
        "delta",
        "edges",
        "sets",
        "records",
        "max_degree",
    ):
        assert getattr(replayed, key) == getattr(report, key), key
    assert replayed.replayed and (replayed.rounds_predicted, replayed.joint_seed) == (0, "")
