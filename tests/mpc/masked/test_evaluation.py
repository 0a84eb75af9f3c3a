"""Two owners compute on shares exactly the kernel in the clear: every kernel, ring and corner.

More owners and more records: `test_edges.py`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.kernels import (
    KERNELS,
    TRIPLE_KERNELS,
    corner_edges,
    random_records,
    record_corners,
    take,
)
from tests.support.mpc_studies import ChunkRun, clear_total, run_chunk, tree_hash_of
from tests.support.one_chunk import evaluate_chunk
from tests.support.studies import generator
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import RemoteProtocolError
from umpc.mpc.masked.bit_shares import LayerShares
from umpc.mpc.masked.material import ChunkInputs
from umpc.ustat.kernel import Kernel

every_kernel = pytest.mark.parametrize("name", KERNELS)
both_rings = pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"ring{ring.bits}")
both_orders = pytest.mark.parametrize("pattern", [(0, 1), (1, 0)], ids=str)


def check(kernel: Kernel, ring, records, label: str, pattern=(0, 1)) -> None:
    run = run_chunk(kernel, ring, records, len(records[0]["x"]), label, pattern)
    assert run.program.word_bits <= ring.bits
    assert run.totals == [clear_total(kernel, ring, records)], f"{kernel.text}, seed {label!r}"


@every_kernel
@both_rings
@both_orders
def test_all_corner_pairs_in_one_chunk(name, ring, pattern):
    """Pattern (1, 0) is that of two-sample edges whose first record belongs to the later node."""
    check(KERNELS[name], ring, corner_edges(), f"corners {name}", pattern)


@every_kernel
def test_each_corner_pair_as_the_only_edge(name):
    for edge in range(0, 49, 3):
        row = slice(edge, edge + 1)
        check(
            KERNELS[name],
            RINGS[edge % 2],
            [take(slot, row) for slot in corner_edges()],
            f"edge {edge} {name}",
        )


@every_kernel
@both_rings
def test_all_records_equal(name, ring):
    same = take(record_corners(), np.full(20, 3))
    check(KERNELS[name], ring, [same, same], f"equal {name}")


@every_kernel
@both_rings
def test_random_records_with_many_ties(name, ring):
    rng = generator(f"random {name}")
    check(KERNELS[name], ring, [random_records(rng, 37), random_records(rng, 37)], f"random {name}")


@every_kernel
@both_rings
def test_no_edges_sum_to_nothing(name, ring):
    nothing = take(record_corners(), slice(0, 0))
    assert run_chunk(KERNELS[name], ring, [nothing, nothing], 0).totals == [0]


LAYERS = {
    "product_compared": 2,  # the product, opened; then its comparison
    "nested_comparison": 3,  # the comparison in |x − y|, the distance, its comparison
    "equality_of_counts": 3,  # the comparisons, what they add up to, whether that is zero
    "all_three_agree": 2,
    "logic_of_three": 3,  # pieces, the wide comparison, the logic
    "minimum": 2,  # pieces of a wide comparison
    "auc": 2,
    "select_by_tie": 2,
    "local_bits_and_a_comparison": 2,
    "wide_sign": 2,
    "wide_distance": 2,
    "logic_with_local_parts": 2,
}
NONE = ("product", "product_of_products", "covariance", "separable", "constant", "zero")


@every_kernel
def test_rounds_and_bits_are_those_of_the_plan(name):
    """Each layer is a round, in which every party sends one message with the bits that it opens."""
    run = run_chunk(KERNELS[name], RINGS[1], corner_edges(), 49)
    lines = [(line.round, line.party, line.message) for line in run.sent]
    layers = range(len(run.plan.layers))
    shapes = [
        (layer, party, run.plan.shape(layer + 1, party, 49)) for layer in layers for party in (0, 1)
    ]
    assert [(n, p, m.step, m.round, m.count, m.width, len(m.payload)) for n, p, m in lines] == [
        (n + 1, p, "open", n + 1, 49, run.plan.open_width(n, p), len(m.payload))
        for n, p, m in shapes
        if m.width
    ]
    assert len(layers) == (0 if name in NONE else LAYERS.get(name, 1))


# --- the tests above can fail ---------------------------------------------------------------------


def party_of(run: ChunkRun, party: int) -> Protocol[list[int]]:
    parts = run.inputs[party], run.dealt[party], run.seeded[party]
    return evaluate_chunk(party, run.plan, *parts, tree_hash_of("chunk"))


def replayed(
    run: ChunkRun, party: int, count: int, change=lambda layer, other, message: message
) -> list[int]:
    """A party's result where the messages that it gets are changed."""
    protocol = party_of(run, party)
    sent = {(line.round - 1, line.party): line.message for line in run.sent}
    try:
        next(protocol)
        for layer in range(len(run.plan.layers)):
            others = [other for other in run.plan.everybody if other != party]
            shapes = [run.plan.shape(layer + 1, other, count) for other in others]
            messages = [
                sent.get((layer, other), shape) for other, shape in zip(others, shapes, strict=True)
            ]
            protocol.send(
                [
                    change(layer, other, message)
                    for other, message in zip(others, messages, strict=True)
                ]
            )
    except StopIteration as stop:
        return stop.value
    raise AssertionError("another round")


def with_bit(message: Message, bit: int) -> Message:
    data = bytearray(message.payload)
    data[bit // 8] ^= 1 << bit % 8
    return replace(message, payload=bytes(data))


@pytest.mark.parametrize("bit", range(4))
def test_a_flipped_opened_bit_changes_the_result(bit):
    corners = record_corners()
    edge = [take(corners, slice(0, 1)), take(corners, slice(1, 2))]
    run = run_chunk(KERNELS["kendall_tau"], RINGS[1], edge, 1)
    assert replayed(run, 1, 1) == run.shares[1]
    assert (
        replayed(run, 1, 1, lambda layer, other, message: with_bit(message, bit)) != run.shares[1]
    )


@pytest.mark.parametrize("party", range(3))
def test_what_anybody_sends_in_any_layer_is_used(party):
    """Inverting the first 200 bits of one message changes the others' results."""
    run = run_chunk(
        TRIPLE_KERNELS["distance_against_a_third"],
        RINGS[1],
        edges_of_three(200),
        200,
        pattern=(0, 1, 2),
    )
    assert replayed(run, party, 200) == run.shares[party] and len(run.plan.layers) > 2
    targets = [
        (layer, other) for layer in range(len(run.plan.layers)) for other in run.plan.everybody
    ]
    for target in targets:
        if target[1] == party or not run.plan.shape(target[0] + 1, target[1], 200).width:
            continue

        def inverted(layer, other, message, target=target):
            start = bytes(255 - byte for byte in message.payload[:25])
            return (
                replace(message, payload=start + message.payload[25:])
                if (layer, other) == target
                else message
            )

        assert replayed(run, party, 200, inverted) != run.shares[party], target


def edges_of_three(count: int) -> list[dict[str, np.ndarray]]:
    return [take(slot, slice(0, count)) for slot in corner_edges(3)]


# --- messages that cannot be read -----------------------------------------------------------------

EDGES = 3
"""So few that every kind of value leaves padding in its last byte."""
CHANGES = {
    "shorter": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "empty": lambda data: b"",
}


def small_run(name: str) -> ChunkRun:
    return run_chunk(
        TRIPLE_KERNELS[name], RINGS[0], edges_of_three(EDGES), EDGES, pattern=(0, 1, 2)
    )


@pytest.mark.parametrize("sender", [0, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_a_message_of_a_wrong_length_is_refused_and_names_its_sender(sender, change):
    run = small_run("wide_leaning")

    def changed(layer, other, message):
        hit = (layer, other) == (1, sender)
        return replace(message, payload=CHANGES[change](message.payload)) if hit else message

    with pytest.raises(RemoteProtocolError, match=f"^node-{sender}: ") as caught:
        replayed(run, 1, EDGES, changed)
    assert (caught.value.culprit, caught.value.step) == (f"node-{sender}", "open")


@pytest.mark.parametrize("sender", [0, 2])
@pytest.mark.parametrize(
    ("name", "last"), [("leaning", "bit"), ("product_against_a_product", "place")]
)
def test_padding_that_is_set_is_refused_and_names_its_sender(sender, name, last):
    """After the bits, and after the packed places."""
    run = small_run(name)
    assert bool(run.plan.opened_places(0, sender)) == (last == "place")

    def changed(layer, other, message):
        return (
            with_bit(message, 8 * len(message.payload) - 1)
            if (layer, other) == (0, sender)
            else message
        )

    with pytest.raises(RemoteProtocolError, match="padding") as caught:
        replayed(run, 1, EDGES, changed)
    assert (caught.value.culprit, caught.value.step) == (f"node-{sender}", "open")


def test_inputs_and_shares_show_nothing_of_themselves():
    assert (
        repr(ChunkInputs({0: np.arange(3)}, {}, {}, 3, ["a", "b"]))
        == "ChunkInputs(3 edges, <redacted>)"
    )
    assert repr(LayerShares({0: np.arange(3)}, {})) == "LayerShares(<redacted>)"
