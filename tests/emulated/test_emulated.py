"""The compiled gate on processors that this machine is not. `make native-emulated`.

QEMU runs programs for x86-64 without AES, with AES-NI and with VAES, and for 64-bit ARM. It has no
AVX-512. On a processor with AVX-512 the widest walk runs with its AES instructions computed lane by
lane. So a real VAES-512 is tested only by `tests/native` on a machine that has it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.emulated.garbled_machine import garbled_program
from tests.emulated.machines import BY_LANES, EMULATED, has_avx512, has_right_vaes, program
from tests.native.garbled_cases import every_case
from tests.native.test_gate import HASH, KEY, differences, inputs
from tests.support.doors import limits
from umpc.mpc.masked.dcf import generate_in_numpy
from umpc.native import KINDS, garbled

MACHINES = [*EMULATED, *([BY_LANES] if has_avx512() else [])]
WIDTHS, FEW = (2, 6, 7, 18, 34, 64), (0, 1, 33, 257)


@pytest.fixture(params=MACHINES, ids=[machine.name for machine in MACHINES])
def machine(request):
    return request.param


def test_it_finds_the_kinds_of_its_processor_and_each_gives_numpys_bytes(machine, tmp_path):
    gate = program(machine, tmp_path)
    assert gate.kinds() == machine.expected
    is_doubtful = machine.is_emulated and "VAES-256" in machine.expected
    if is_doubtful and not has_right_vaes(machine, tmp_path):
        gate = replace(gate, left_out=("VAES-256",))
        print("VAES-256 did not run: this emulator's VAES is wrong")
    found = [each for width in WIDTHS for each in differences(gate, width, 300)]
    found += [each for count in FEW for each in differences(gate, 12, count)]
    print(f"{machine.name}: ran {', '.join(gate.kinds()) or 'nothing: it has numpy'}")
    assert found == []


def test_it_refuses_kinds_that_its_processor_lacks(machine, tmp_path):
    gate = program(machine, tmp_path)
    mask, masked, roots = inputs(12, 5)
    keys = generate_in_numpy(12, mask, roots, HASH)
    arrays = (*map(np.ascontiguousarray, keys), masked, roots[0])
    for kind in KINDS.keys() - set(machine.expected):
        with pytest.raises(Exception, match="exit status 4"):
            gate.evaluate(KEY, 0, 12, *arrays, kind)


def test_garbled_edges_and_transfers_give_numpys_bytes(machine, tmp_path):
    kinds = program(machine, tmp_path).kinds()
    names = [name for name in kinds if name != "VAES-256" or has_right_vaes(machine, tmp_path)]
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
