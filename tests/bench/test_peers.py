"""The job of `make peers`: its table, its turns, and what is said of a peer that fails."""

from __future__ import annotations

import json
import sys

import pytest

from bench.peers import peers
from bench.peers.job import VALUES, WAYS, job_table
from bench.peers.turns import COLUMNS, Turn, round_robin, row, spread


def a_turn(number: int) -> Turn:
    return Turn(0.001 * number, 0.01 * number, 0.002, 1000 + number, None)


def test_the_fields_are_of_eight_bits():
    """A difference of numbers of 0 to 127 has eight bits with its sign."""
    assert [(each.lower, each.upper) for each in job_table().fields()] == [
        ("0", str(VALUES - 1)),
        ("0", str(VALUES - 1)),
    ]
    assert {"0", str(VALUES - 1)} <= {row[0] for row in job_table().rows}


def test_every_way_takes_a_turn_before_any_takes_its_next():
    order = []

    def way(name):
        return lambda: order.append(name) or a_turn(len(order))

    taken = round_robin({name: way(name) for name in WAYS}, 3)
    assert order == list(WAYS) * 4
    assert {len(turns) for turns in taken.values()} == {3}, "the first turn is not counted"
    assert taken["umpc with a dealer"][0] == a_turn(3)


def test_a_cell_is_min_median_max_and_connecting_is_added():
    assert spread([3, 1, 2.5]) == "1.0–2.5–3.0"
    name, *cells = row("umpc", [a_turn(number) for number in (1, 2, 4)])
    assert cells == ["10.0–20.0–40.0", "11.0–22.0–44.0", "2.0–2.0–2.0", "1,002", "in those"]
    assert name == "umpc" and len(cells) + 1 == len(COLUMNS)


def stand_in(tmp_path, printed: str, code: int = 0) -> str:
    """A program in the place of a Python with SPU."""
    file = tmp_path / "python"
    file.write_text(
        f"#!{sys.executable}\nimport sys\nprint({printed!r}, "
        f"file=sys.stderr if {code} else sys.stdout)\nsys.exit({code})\n"
    )
    file.chmod(0o755)
    return str(file)


def test_a_peers_figures_become_a_row_and_a_wrong_sum_or_a_failure_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    figures = {key: [0.1, 0.2, 0.3] for key in ("in_all", "with_connecting", "online")}
    answer = figures | {"bytes": [1, 2, 3], "wrong": [], "expected": 6}
    cells = peers.spu_row(stand_in(tmp_path, json.dumps(answer)), "semi2k", 2)
    assert len(cells) == len(COLUMNS) and cells[1] == "100–200–300"
    assert cells[4] == "not alone", "other work shares the loopback interface"
    wrong = stand_in(tmp_path, json.dumps(answer | {"wrong": [7]}))
    with pytest.raises(RuntimeError, match="expected 6, got"):
        peers.spu_row(wrong, "semi2k", 2)
    with pytest.raises(RuntimeError, match="cheetah: no module"):
        peers.spu_row(stand_in(tmp_path, "no module", 1), "cheetah", 2)
