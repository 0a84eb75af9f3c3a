"""backend = "auto" without a dealer: the grid by cross terms, or garbled pairs."""

from __future__ import annotations

import pytest

from tests.protocols.test_auto import WIDE, loaded
from tests.support.studyfiles import planned_file
from umpc.coordinator.studyfile import load_study_file
from umpc.mpc.transfers.message_shapes import extension_bytes
from umpc.planning.prediction import attempt_over
from umpc.planning.seconds import Network
from umpc.planning.study_plan import StudyPlan, plan_study
from umpc.protocols.auto import grid_needs, pairs_needs
from umpc.protocols.grid.binding import cost_of
from umpc.protocols.grid.cross_terms import BITS_A_BYTE_ROW, EXTENSION_ROW_BYTES
from umpc.protocols.registry import decode_study

OPEN = {"preprocessing": "none", "backend": "auto"}
HUGE = [{**WIDE[0], "upper": 50_000}, {**WIDE[1], "upper": 50_000}]


@pytest.mark.parametrize(
    ("changes", "backend"),
    [
        ({}, "grid"),
        ({"fields": WIDE, "records": 100, "edges": "2n"}, "garbled"),
        ({"fields": HUGE}, "garbled"),
    ],
    ids=str,
)
def test_cross_terms_are_taken_where_they_are_possible_and_cheaper(tmp_path, changes, backend):
    file = loaded(tmp_path, **OPEN, **changes)
    study = file.study("coordinator")
    assert (study.backend, study.preprocessing, study.dealer) == (backend, "none", None)
    assert decode_study(study.encode()) == study
    assert file.chosen


def test_what_cross_terms_need_is_what_the_cost_model_counts(tmp_path):
    """Frames come besides, and an extension is padded, which is nothing beside many cells."""
    study = loaded(tmp_path, **OPEN, fields=[{**each, "upper": 255} for each in WIDE]).study("c")
    assert study.backend == "grid"
    predicted = cost_of(attempt_over(study, "5000,5000")).bytes_online
    assert grid_needs(study, 10_000).bytes == pytest.approx(predicted, rel=0.01)
    row = EXTENSION_ROW_BYTES / BITS_A_BYTE_ROW
    assert extension_bytes(1 << 20) == pytest.approx((1 << 20) * row, rel=0.01)
    more = grid_needs(study, 80_000)
    assert 1 < more.bytes / grid_needs(study, 10_000).bytes < 2, "records count by their bits"


def test_a_garbled_edge_takes_longer_than_a_dealt_one(tmp_path):
    dealt = loaded(tmp_path, backend="shared", edges="2n").study("c")
    garbled = loaded(tmp_path, backend="garbled", preprocessing="none", edges="2n").study("c")
    assert pairs_needs(garbled, 1_000).seconds > 2 * pairs_needs(dealt, 1_000).seconds


@pytest.mark.parametrize(("backend", "other"), [("grid", "garbled"), ("garbled", "grid")])
def test_a_plan_shows_the_other_way_without_a_dealer_too(tmp_path, backend, other):
    def plan(backend: str) -> StudyPlan:
        entries = {"backend": backend, "preprocessing": "none", "edges": "all"}
        path = planned_file(tmp_path, ("north", "south"), **entries)
        return plan_study(load_study_file(path), "30,40", Network())

    found, expected = plan(backend), plan(other).values
    assert found.impossible == "" and found.beside
    for key in ("edges", "noise_std", "rounds", "bytes_online", "bytes_offline"):
        assert found.beside[key] == expected[key], key
