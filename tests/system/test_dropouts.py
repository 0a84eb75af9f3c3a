"""Real nodes die before the release, and the study ends with the others: exact, charged once."""

from __future__ import annotations

import pytest

from tests.support.dropouts import ALL, EXACT, POINTS, check_survivors, lead, lose, start_lab
from tests.support.node_ledgers import kinds
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
