"""Real nodes die before the release, and the study ends with the others: exact, charged once."""

from __future__ import annotations

import threading

import pytest

from tests.support.dropouts import (
    ALL,
    BUDGET,
    EXACT,
    POINTS,
    check_survivors,
    lead,
    lose,
    lose_the_hub,
    start_lab,
)
from tests.support.node_ledgers import beside, kinds, share_of, start_again
from umpc.errors import PeerLost, UmpcError


def test_a_node_that_is_killed_is_left_out_and_the_result_is_asked_for_again(lab):
    here = start_lab(lab(4))
    for victim, point in (("node-2", "after-hold"), ("node-4", "prepare 3")):
        study, report = lose(here, victim, point)
        check_survivors(here, study, report, [victim])
        again = lead(here, name=study.name, epsilon=EXACT, may_miss=1)[1]
        assert again.replayed and again.estimate == report.estimate
        assert again.missing == [victim], "also with the lost node there again"
    command = here.run(name=study.name, epsilon=EXACT, may_miss=1, **ALL)
    assert command.code == 0 and command.report["missing"] == [victim]
    with pytest.raises(UmpcError, match=r"needs node-4 \(required\)") as caught:
        lose(here, "node-4", "before-ready", required=["node-4"], name="all")
    assert isinstance(caught.value, PeerLost) and caught.value.culprit == "node-4"


def test_behind_a_hub_a_killed_node_is_left_out_or_finishes_when_it_is_back(lab):
    """Killed before it was ready it is lost; afterwards the same run waits until it is back."""
    here = start_lab(lab(3), hub_grace=1)
    study, report = lose(here, "node-2", "during-rounds")
    check_survivors(here, study, report, ["node-2"])
    assert "the connection of node 'node-2' broke" in here.log("hub")
    start_again(here, "node-3", "release-asked", BUDGET)

    def revive() -> None:
        here.served["node-3"].process.wait(60)
        start_again(here, "node-3", "", BUDGET)

    revival = threading.Thread(target=revive)
    revival.start()
    _, found = lead(here, name="back", epsilon=EXACT, may_miss=1, returning=60.0)
    revival.join()
    assert found.missing == [] and found.nodes == 3
    assert not found.replayed, "this is the first result, although a share was stored meanwhile"
    assert lead(here, name="back", epsilon=EXACT, may_miss=1)[1].replayed
    assert all(share_of(here, name, "back") for name in here.names)
    assert [kinds(here, name).count("charge") for name in here.names] == [2, 1, 2]
    assert not any(beside(here, name).held for name in here.names)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("victim", [f"node-{number}" for number in range(1, 9)])
def test_any_of_eight_nodes_at_any_of_twenty_points(lab, victim):
    here = start_lab(lab(8))
    assert len(POINTS) == 20
    for point in POINTS:
        study, report = lose(here, victim, point)
        check_survivors(here, study, report, [victim])
    assert all(kinds(here, name).count("charge") == 20 for name in here.names if name != victim)
    assert kinds(here, victim).count("charge") == 0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(4))
def test_behind_a_hub_each_of_eight_nodes_at_twenty_points(lab, part):
    here = start_lab(lab(8), hub_grace=1)
    for at in range(part, len(POINTS), 4):
        victim = here.names[at % len(here.names)]
        study, report = lose(here, victim, POINTS[at])
        check_survivors(here, study, report, [victim])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(4))
def test_a_hub_that_is_killed_at_any_of_twenty_points_changes_no_study(lab, part):
    here = start_lab(lab(8), hub_grace=60)
    whole, expected = lead(here, name="expected", epsilon=EXACT)
    check_survivors(here, whole, expected, [])
    for point in POINTS[part::4]:
        study, report = lose_the_hub(here, point)
        check_survivors(here, study, report, [])
        assert report.estimate == expected.estimate and not report.replayed, point
