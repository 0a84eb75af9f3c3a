"""A study of `gopa`, its tables and exact sums, and the facts that colluding nodes know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tests.support.protocols import make_node, messages_of
from tests.support.studies import Columns, generator, make_study
from umpc.protocols.registry import checked
from umpc.simulation import Simulated
from umpc.study.document import Study
from umpc_papers.gopa.messages import GopaMessages
from umpc_papers.gopa.node import GopaNode

FACTS = {
    "edges": "all",
    "noise": "gopa",
    "backend": "none",
    "preprocessing": "none",
    "dealer": None,
}

protocol_of = cache(messages_of)


def gopa_study(nodes: int = 3, colluding: int = 1, **changes) -> Study:
    """The mean of x, 0 to 3. Args: changes: as for make_study."""
    shape = {
        "protocol": "gopa",
        "kernels": "a.x",
        "degree": 1,
        "delta": "1e-9",
        "max_colluding": colluding,
    }
    return checked(make_study(**(FACTS | shape | {"nodes": nodes} | changes)))


def tables_of(counts: Sequence[int], label: str = "gopa") -> list[dict[str, np.ndarray]]:
    rng = generator(label)
    return [{name: rng.integers(0, 4, count) for name in "xy"} for count in counts]


def sums(study: Study, tables: Sequence[Columns]) -> list[int]:
    """Each node's value without noise, in steps."""
    messages: GopaMessages = protocol_of(study)
    return [int(messages.kernel.evaluate([table]).sum()) * messages.scale for table in tables]


def numbers(run: Simulated) -> list[int]:
    """The numbers in the messages, which the coordinator can read."""
    return [int.from_bytes(share, "little", signed=True) for share in run.transcript.shares]


def uncovered(run: Simulated) -> list[int]:
    """The honest nodes' messages without the noise that they share with the colluding nodes.

    The first t nodes collude. They and the coordinator see the messages in this way.
    """
    attempt = run.attempt
    nodes = run.nodes
    known = range(attempt.study.max_colluding)
    found = numbers(run)
    return [
        found[node] + sum(nodes[peer].shared_noise(attempt, node) for peer in known)
        for node in range(len(known), len(nodes))
    ]


def ring_of_sessions(study: Study, tables: Sequence[Columns], entropy) -> list[GopaNode]:
    """All nodes of an attempt, which have drawn their noise."""
    nodes = [
        make_node(node.name, study, table, len(table["x"]), entropy)
        for node, table in zip(study.nodes, tables, strict=True)
    ]
    members = [node.accept() for node in nodes]
    openings = [node.agree(members) for node in nodes]
    for node in nodes:
        node.begin(openings)
    return nodes
