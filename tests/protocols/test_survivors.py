"""Every kind of protocol over survivors: a study of these nodes alone, and one signed set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.counts import counted_by_numpy, counts_study, counts_tables, only
from tests.support.gopa import gopa_study, numbers, protocol_of, sums, tables_of
from tests.support.grid import grid_study
from tests.support.local import local_study, local_tables, quantised
from tests.support.protocols import coordinator_of, make_node
from tests.support.studies import LOUD, Entropy, clear_sums, graph_of, make_study, random_tables
from umpc.api.description import describe_prediction, describe_study
from umpc.cli.shared import print_report
from umpc.errors import RemoteProtocolError
from umpc.protocols.base.coordinator import StudyState
from umpc.protocols.registry import checked
from umpc.reporting.rows import describe_records
from umpc.simulation import simulate
from umpc.study import messages as m
from umpc.study.attempt import describe_losses, without
from umpc.study.document import Study
from umpc.study.report import Report

COUNTS = (4, 7, 5, 6, 8)
LOST = ("node-1", "node-4")
LEFT = (0, 2, 3)


def over_survivors(whole: Study, tables: list) -> tuple:
    """The report over the survivors, and that of a study which never had other nodes."""
    whole = checked(whole)
    left = [tables[node] for node in LEFT]
    study = without(whole, LOST)
    alone = replace_nodes(whole)
    report = simulate(study, left, Entropy("survivors")).report
    assert report.missing == list(LOST) and report.records == sum(COUNTS[node] for node in LEFT)
    expected = simulate(alone, left, Entropy("survivors")).report
    for key in ("noise_std", "delta", "edges", "max_degree", "records", "nodes", "max_colluding"):
        assert getattr(report, key) == getattr(expected, key), key
    return study, left, report


def replace_nodes(whole: Study) -> Study:
    """A study of the nodes that are left, which may miss none."""
    own = without(whole, LOST)
    facts = {key: getattr(own, key) for key in own.__struct_fields__}
    for key in ("may_miss", "required", "missing"):
        del facts[key]
    return Study(**facts)


def test_a_table_of_counts_is_exact_over_the_survivors():
    study = counts_study(nodes=5, may_miss=2)
    study, left, report = over_survivors(study, only(study, counts_tables("survivors", COUNTS)))
    edges = ([each - 0.5 for each in range(21)], [-0.5, 0.5, 1.5])
    exact = counted_by_numpy(left, ["time", "event"], edges)
    assert report.counts.values == exact.ravel().tolist()


@pytest.mark.parametrize("make", [make_study, grid_study], ids=["pairs", "grid"])
def test_pairs_and_grid_are_exact_over_the_survivors(make):
    whole = make(nodes=5, may_miss=2, epsilon=LOUD, edges="2n" if make is make_study else "all")
    study, left, report = over_survivors(whole, random_tables(COUNTS, "survivors"))
    (total,), (kernel,) = clear_sums(study, left, graph_of(study, report)), study.parsed_kernels
    assert report.estimate == float(total * kernel.unit / report.edges)


def test_one_message_protocols_take_the_survivors_messages():
    whole = local_study("bell-ldp", nodes=5, may_miss=2, epsilon="400")
    study, left, report = over_survivors(whole, local_tables(whole, COUNTS))
    assert report.estimate == pytest.approx(quantised(study, left), abs=1e-6)


def test_gopa_draws_its_graph_over_the_survivors_so_that_all_noise_cancels():
    """Noise that a survivor shared with a lost node would stay in the sum."""
    whole = gopa_study(nodes=5, colluding=1, may_miss=2, epsilon="1", neighbours=2)
    study, left, report = over_survivors(whole, tables_of(COUNTS, "survivors"))
    run = simulate(study, left, Entropy("survivors"))
    scale = protocol_of(study).scale
    noise = [number - own for number, own in zip(numbers(run), sums(study, left), strict=True)]
    assert abs(sum(noise)) < 6 * report.noise_std * report.records * scale
    assert min(map(abs, noise)) > 10 * abs(sum(noise)), "each message by itself has far more"


def test_two_sets_of_survivors_shown_to_two_nodes_are_noticed_before_any_opening():
    """The coordinator tells node-0 that node-3 was lost, and node-1 that node-2 was."""
    whole = make_study(nodes=4, may_miss=1)
    tables = random_tables(COUNTS[:4], "two sets")
    sets = {"node-0": without(whole, ["node-3"]), "node-1": without(whole, ["node-2"])}
    sides = {}
    for of, study in sets.items():
        for name in [node.name for node in study.nodes]:
            own = tables[int(name[-1])]
            entropy = Entropy(f"{name} {of}")
            sides[name, of] = make_node(name, study, own, COUNTS[int(name[-1])], entropy)
    true = sides["node-0", "node-0"]
    # node-1 has signed its member for the other set, whatever names and order it is passed on in.
    members = [
        true.accept(),
        sides["node-1", "node-1"].accept(),
        sides["node-2", "node-0"].accept(),
    ]
    with pytest.raises(RemoteProtocolError, match="node-1"):
        true.agree(members)
    # Even a node that signs a member for both sets must sign all members of this set.
    members[1] = sides["node-1", "node-0"].accept()
    opening = true.agree(members)
    assert len(opening) == 32
    others = [sides["node-1", "node-1"], sides["node-2", "node-0"]]
    others[1].agree(members)
    others[0].agree(
        [sides["node-0", "node-1"].accept(), others[0].accept(), sides["node-3", "node-1"].accept()]
    )
    with pytest.raises(RemoteProtocolError, match="node-1"):
        true.check_agreed([side.sign_members() for side in (true, *others)])


def test_an_attempt_over_survivors_shares_no_secret_with_the_one_that_ended():
    whole = make_study(nodes=3, may_miss=1)
    tables = random_tables(COUNTS[:3], "fresh")
    entropy = Entropy("fresh")
    first = simulate(whole, tables, entropy)
    second = simulate(without(whole, ["node-2"]), tables[:2], entropy)
    keys = [{member.public_key for member in run.attempt.members} for run in (first, second)]
    commitments = [{member.commitment for member in run.attempt.members} for run in (first, second)]
    assert not keys[0] & keys[1] and not commitments[0] & commitments[1]
    assert first.attempt.id != second.attempt.id and first.attempt.seed != second.attempt.seed


def test_held_attempts_of_other_survivors_are_never_finished_as_these():
    """All nodes hold one attempt, and the proposal is of another set: it is dropped."""
    whole = make_study(nodes=3, may_miss=1)
    study = without(whole, ["node-2"])
    side = coordinator_of(study)
    held = [m.Held(bytes(32), 4), m.Held(bytes(32), 5)]
    assert side.state(held) is StudyState.DROP
    fits = [replace(answer, missing=("node-2",)) for answer in held]
    assert side.state(fits) is StudyState.FINISH
    assert side.state([fits[0], held[1]]) is StudyState.DROP


def test_the_report_and_the_plan_say_who_is_missing_and_what_the_estimate_is_of(capsys):
    whole = make_study(nodes=5, may_miss=2, required=("node-3",), edges="2n")
    report = over_survivors(whole, random_tables(COUNTS, "words"))[-1]
    print_report(report, "table")
    shown = capsys.readouterr().out
    assert "missing nodes" in shown and "node-1, node-4" in shown
    assert "of the nodes that were left, without node-1, node-4" in describe_records(report)
    assert Report.from_dict(report.to_dict()) == report
    assert ("may miss", describe_losses(whole)) in list(describe_study(whole))
    lines = list(describe_prediction(whole, ",".join(map(str, COUNTS))))
    place = [label for label, _ in lines].index("if missing")
    assert lines[place][1].startswith("node-1, node-4;"), "those with the most records"
    assert lines[place + 1 :] == [
        (f"  {label}", text) for label, text in describe_prediction(replace_nodes(whole), "4,5,6")
    ]
