"""The compiled gate on processors that this machine is not. `make native-emulated`.

QEMU runs programs for x86-64 without AES, with AES-NI and with VAES, and for 64-bit ARM. On a
processor with AVX2 the wide kind runs with its AES instructions computed lane by lane. So a real
VAES-256 is tested by `tests/native` on a machine that has it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulated.garbled_machine import garbled_program
from tests.emulated.machines import BY_LANES, EMULATED, Machine, has_avx2, has_right_vaes, program
from tests.native.garbled_cases import every_case
from tests.native.point_cases import ROWS, PointFunctions, differences
from tests.support.doors import limits
from umpc.native import garbled

MACHINES = [*EMULATED, *([BY_LANES] if has_avx2() else [])]


@pytest.fixture(params=MACHINES, ids=[machine.name for machine in MACHINES])
def machine(request):
    return request.param


def test_it_finds_the_kinds_of_its_processor(machine, tmp_path):
    assert program(machine, tmp_path).kinds() == machine.expected


def right_kinds(machine: Machine, folder: Path) -> list[str]:
    """The kinds that the machine computes as processors do."""
    kinds = program(machine, folder).kinds()
    return [name for name in kinds if name != "VAES-256" or has_right_vaes(machine, folder)]


def test_garbled_edges_and_transfers_give_numpys_bytes(machine, tmp_path):
    names = right_kinds(machine, tmp_path)
    with limits() as limit:
        limit(garbled, CHOSEN=None)
        expected = every_case()
    there = garbled_program(machine, tmp_path)
    for kind in names:
        with limits() as limit, there.in_place():
            limit(garbled, CHOSEN=kind)
            assert every_case() == expected, kind
    print(f"{machine.name}: ran {there.ran} calls on {', '.join(names) or 'no kind'}")
    assert bool(there.ran) == bool(names)


def test_point_keys_give_numpys_bytes(machine, tmp_path):
    names = right_kinds(machine, tmp_path)
    there = garbled_program(machine, tmp_path)
    path = PointFunctions(there.generate_points, there.add_points)
    shapes = [*((cells, None) for cells in (2, 100, 1000, 3 * 4096 + 70)), *ROWS[3:6]]
    found = [
        differences(names, cells, 33, path, alpha, row)
        for cells, row in shapes
        for alpha in (None, 5)
    ]
    assert [one for each in found for one in each] == []
    assert there.ran == 3 * len(names) * len(found)
