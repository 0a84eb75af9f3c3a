"""The evaluator's view does not depend on the inputs, and a wrong label gives garbage."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.support.gates import AND, BOTH, FOUR, HASH, RING, inputs, offset, one_gate, run
from tests.support.mpc_studies import ALPHA, EDGES, homogeneity, seed_of, uniformity
from umpc.crypto.prg import Stream
from umpc.crypto.ring import Ring
from umpc.mpc.garbled.circuits import (
    Circuit,
)
from umpc.mpc.garbled.garbling import (
    GarbledEdges,
    active_labels,
    evaluate,
    garble,
)
from umpc.mpc.garbled.gates import GateHash


@pytest.mark.usefixtures("both_ways")
@BOTH
@pytest.mark.parametrize("wire", [0, 1])
def test_a_wrong_label_gives_garbage(circuit, wire):
    """Neither value of the output, even with a label of the right color."""
    got = run(circuit, np.repeat(FOUR, 64, axis=1), "wrong")
    active = got.active.copy()
    active[wire, :, 1] ^= np.uint64(1 << 40)
    found = evaluate(circuit, RING, got.garbled, active, 0, HASH)
    values = (got.kept + found).view(np.int64)
    assert not np.isin(values, (0, 1)).any() and len(np.unique(values)) == values.size


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("half", [0, 1])
def test_a_changed_table_gives_garbage_where_its_row_is_used(half):
    got = run(AND, np.repeat(FOUR, 64, axis=1), "changed")
    tables = got.garbled.tables.copy()
    tables[0, half, :, 0] ^= np.uint64(1 << 20)
    changed = GarbledEdges(tables, got.garbled.elements)
    values = (got.kept + evaluate(AND, RING, changed, got.active, 0, HASH)).view(np.int64)[0]
    used = (got.active[half, :, 0] & np.uint64(1)).astype(bool)
    assert not np.isin(values[used], (0, 1)).any() and np.isin(values[~used], (0, 1)).all()


@pytest.mark.usefixtures("both_ways")
@BOTH
def test_another_edge_number_gives_garbage(circuit):
    got = run(circuit, np.repeat(FOUR, 64, axis=1), "number")
    values = (got.kept + evaluate(circuit, RING, got.garbled, got.active, 1, HASH)).view(np.int64)
    assert not np.isin(values, (0, 1)).any()


def view(
    circuit: Circuit,
    bits: tuple[int, int],
    label: str,
    gate_hash: GateHash = HASH,
    one_record: bool = False,
) -> tuple[np.ndarray, int]:
    """Bits of ciphertexts, elements, the evaluator's share and its labels, as one category.

    one_record: both labels are the same on all edges, as those of two records would be; they are
        left out.
    """
    delta, count = offset(label), 1 if one_record else EDGES
    labels = Stream(seed_of(label)).words(4 * count).reshape(2, count, 2)
    labels = np.ascontiguousarray(np.broadcast_to(labels, (2, EDGES, 2)))
    active = active_labels(labels, inputs(EDGES, *bits), delta)
    garbled, _ = garble(circuit, RING, delta, labels, 0, gate_hash)
    found = evaluate(circuit, RING, garbled, active, 0, gate_hash)
    words = [*(half for table in garbled.tables for half in table), *(() if one_record else active)]
    parts = [word[:, 0] & np.uint64(1) for word in words] + [
        word[:, 1] >> np.uint64(63) for word in words
    ]
    parts += [element & np.uint64(1) for element in (*garbled.elements, *found)]
    return sum(part.astype(np.int64) << i for i, part in enumerate(parts)), 1 << len(parts)


class NoHash(GateHash):
    """π is 0, so a hash is its tweak, and nothing is a pad."""

    def permute(self, blocks: np.ndarray) -> np.ndarray:
        return np.zeros_like(blocks)


class OneTweak(GateHash):
    """All edges have the tweak of the first one."""

    def second(self, once: np.ndarray, tweaks: np.ndarray) -> np.ndarray:
        return super().second(once, np.broadcast_to(tweaks[:1], tweaks.shape))


INPUTS = list(product((0, 1), repeat=2))


@pytest.mark.usefixtures("both_ways")
@BOTH
@pytest.mark.parametrize("one_record", [False, True])
@pytest.mark.parametrize("bits", INPUTS)
def test_the_evaluators_view_is_uniform_whatever_the_inputs(circuit, bits, one_record):
    p = uniformity(*view(circuit, bits, f"view {bits}", one_record=one_record))
    assert p > ALPHA, f"a view is not uniform: p = {p:.1e}, N = {EDGES}, inputs {bits}"


@pytest.mark.usefixtures("both_ways")
@BOTH
@pytest.mark.parametrize("one_record", [False, True])
@pytest.mark.parametrize("bits", INPUTS[1:])
def test_views_of_different_inputs_have_one_law(circuit, bits, one_record):
    p = homogeneity(
        *(
            view(circuit, inputs, f"law {inputs}", one_record=one_record)[0]
            for inputs in ((0, 0), bits)
        )
    )
    assert p > ALPHA, f"a view depends on the inputs: p = {p:.1e}, N = {EDGES}, inputs {bits}"


@pytest.mark.usefixtures("in_numpy")
@BOTH
@pytest.mark.parametrize("bits", INPUTS[1:])
def test_power_the_same_test_finds_gates_without_pads(circuit, bits):
    mutant = NoHash(bytes(16))
    assert (
        homogeneity(
            *(view(circuit, inputs, f"law {inputs}", mutant)[0] for inputs in ((0, 0), bits))
        )
        < ALPHA
    )


@pytest.mark.usefixtures("in_numpy")
@BOTH
@pytest.mark.parametrize("bits", INPUTS)
def test_power_the_same_test_finds_a_tweak_that_is_used_twice(circuit, bits):
    assert (
        uniformity(
            *view(circuit, bits, f"view {bits}", OneTweak(seed_of("gates")), one_record=True)
        )
        < ALPHA
    )


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("bits", INPUTS)
def test_colors_of_all_wires_are_uniform(bits):
    """The colors of both inputs and of the output, as the evaluator finds them.

    The lowest bit chose between pad and pad + t.
    """
    got = run(AND, inputs(EDGES, *bits), f"colors {bits}")
    color = (
        got.found[0] != evaluate(AND, RING, without_elements(got.garbled), got.active, 0, HASH)[0]
    )
    colors = [*(got.active[:, :, 0] & np.uint64(1)), color]
    p = uniformity(sum(color.astype(np.int64) << i for i, color in enumerate(colors)), 8)
    assert p > ALPHA, f"colors are not uniform: p = {p:.1e}, N = {EDGES}, inputs {bits}"


def without_elements(garbled: GarbledEdges) -> GarbledEdges:
    return GarbledEdges(garbled.tables, np.zeros_like(garbled.elements))


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("garbled", [False, True])
@pytest.mark.parametrize("weight", [1, 1000])
@pytest.mark.parametrize("bits", INPUTS)
def test_both_shares_are_uniform(bits, weight, garbled):
    got = run(
        one_gate(True, weight, garbled), inputs(EDGES, *bits), f"shares {bits} {weight}", Ring(32)
    )
    for share in (got.kept, got.found):
        p = uniformity(share[0] >> np.uint32(24), 256)
        assert p > ALPHA, (
            f"shares are not uniform: p = {p:.1e}, N = {EDGES}, inputs {bits}, weight {weight}"
        )
