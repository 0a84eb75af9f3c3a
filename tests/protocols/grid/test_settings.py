"""How a study chooses the grid, and what is refused, with what to take instead."""

from __future__ import annotations

import pytest

from tests.support.grid import grid_study
from tests.support.protocols import assert_refused
from tests.support.studies import KENDALL, make_study
from umpc.errors import KernelError, RangeError, StudyError
from umpc.protocols.grid.protocol import GridProtocol
from umpc.protocols.grid.settings import GridSettings
from umpc.protocols.registry import chosen_protocol, decode_study, find_protocol, protocol_of
from umpc.study.settings import LYING_NODES


def test_a_file_of_the_usual_protocol_chooses_the_grid_by_its_backend():
    grid = find_protocol("grid")
    assert isinstance(grid, GridProtocol)
    assert chosen_protocol("u-mpc", {"backend": "grid"}) is grid
    assert chosen_protocol("grid", {}) is grid
    assert chosen_protocol("u-mpc", {"backend": "shared"}) is find_protocol("u-mpc")
    assert chosen_protocol("gopa", {"backend": "grid"}) is find_protocol("gopa")


def test_a_study_survives_its_bytes():
    study = grid_study(noise="in_mpc")
    assert decode_study(study.encode()) == study
    assert protocol_of(study) is find_protocol("grid")
    assert (study.backend, study.coins, study.edges) == ("grid", "transfers", "all")


def test_usual_noise_is_that_of_u_mpc():
    read = find_protocol("grid").read_settings
    assert read({}, 4, "1") == GridSettings(noise="in_mpc")
    assert read({}, 4, "1e9") == read({}, 65, "1") == GridSettings(noise="distributed")


REFUSED = [
    ({"adversary": LYING_NODES, "noise": "in_mpc"}, 'needs noise = "distributed"'),
    ({"adversary": LYING_NODES, "levels": 3}, "takes no levels"),
    ({"adversary": LYING_NODES, "kernels": "(a.x - b.x) * (a.y - b.y)"}, "records add up values"),
    (
        {"adversary": LYING_NODES, "kernels": "abs(a.x + a.y - b.x - b.y)"},
        "a cell may be that of no record",
    ),
    ({"edges": "2n"}, 'over all sets, got edges = "2n"'),
    ({"kernels": "a.x", "degree": 1}, r'1 record\(s\); take backend = "shared"'),
    (
        {"kernels": "a.x * b.x * c.x * d.x", "degree": 4},
        r"4 record\(s\); take backend = \"shared\"",
    ),
    ({"backend": "shared"}, "must be one of grid, got 'shared'"),
    ({"noise": "central"}, 'noise of "grid" must be one of distributed, in_mpc'),
    ({"noise": "skellam"}, "delta goes with noise"),
    ({"delta": "1e-9"}, "delta goes with noise"),
    ({"noise": "skellam", "delta": "2"}, "between 0 and 1"),
    ({"dealer": None}, "name one"),
    ({"preprocessing": "none"}, "has no dealer; leave 'dealer' out"),
    ({"preprocessing": "both"}, "preprocessing must be one of dealer, none"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_a_study_that_the_grid_does_not_take_is_refused_with_what_to_take(changes, message):
    assert_refused(grid_study(**changes), StudyError, f"(?s){message}")


def test_a_committee_takes_two_nodes():
    assert_refused(grid_study(nodes=1, noise="in_mpc"), StudyError, "at least two nodes")


def test_a_grid_that_is_too_large_is_refused_with_what_to_coarsen():
    study = grid_study(KENDALL, x=("0", "100000"), y=("0", "100000"))
    assert_refused(study, RangeError, r'cells.*at most 67108864.*; take backend = "shared"')


def test_a_kernel_that_does_not_factor_is_refused():
    study = grid_study(
        "abs(a.x - b.x) * abs(a.x - b.x) < abs(a.y * b.y) * 3 + a.x * b.x * b.y * a.y",
        x=("0", "500"),
        y=("0", "500"),
    )
    with pytest.raises((KernelError, RangeError), match='backend = "shared"'):
        protocol_of(study).check(study)


def test_the_same_study_by_pairs_has_another_hash():
    assert grid_study().hash != make_study(KENDALL, 3, noise="distributed").hash


def test_people_see_the_grid_and_its_axes():
    lines = dict(find_protocol("grid").describe(grid_study(noise="in_mpc")))
    assert lines["grid"] == "16 cells: 4 (x) × 4 (y)"
    assert "transfers" in lines["coins"]
