"""`hajek-grid` over real processes: two releases, one charge, the same bytes when asked again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.node_ledgers import beside, settled, start_again
from tests.system.conftest import Lab, running
from umpc.errors import PeerLost

STUDY = {
    "protocol": "hajek-grid",
    "edges": None,
    "delta": "1e-10",
    "bins": {"age": 3, "balance": 2},
}


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Lab]:
    """Provide two nodes and a dealer."""
    with running(tmp_path_factory, 2, "100") as lab:
        yield lab


def test_a_study_is_charged_once_and_repeats_its_answers(here):
    first, again = (here.run(**STUDY, name="once") for _ in range(2))
    assert [outcome.code for outcome in (first, again)] == [0, 0], first.error + again.error
    report = first.report
    assert report["bytes_online_by_step"] == report["bytes_online_by_step_predicted"]
    assert report["rounds"] == report["rounds_predicted"] == 3
    assert "local sensitivity" in report["note"] and report["delta"] == 1e-10
    assert again.report["replayed"] and again.report["estimate"] == report["estimate"]
    for name in here.names:
        kinds = [row.kind for row in beside(here, name).rows if row.kind in ("charge", "answer")]
        assert kinds == ["charge", "answer"]


def test_a_node_killed_before_its_answer_gives_it_when_it_is_back(here):
    start_again(here, "node-2", "before-answer", "100")
    broken = here.run(**STUDY, name="broken")
    assert broken.code == PeerLost.exit_code and "have charged" in broken.last_line, broken.error
    start_again(here, "node-2", epsilon="100")
    settled(here)
    again = here.run(**STUDY, name="broken")
    assert again.code == 0 and again.report["replayed"], again.error
    for name in here.names:
        rows = beside(here, name).rows
        assert sum(row.kind == "charge" and row.note == "broken" for row in rows) == 1
