"""Two owners compute, on shares, exactly what the kernel is in the clear: every kernel, ring and corner."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.errors import EncodingError, KernelError, RangeError
from umpc.mpc import evaluation
from umpc.mpc.evaluation import ChunkInputs, evaluate_chunk, fields_frames, fields_messages, read_fields
from umpc.mpc.masks import wire_masks
from umpc.mpc.plan import compile_pair
from umpc.mpc.prg import FixedKeyHash
from umpc.mpc.ring import RINGS
from umpc.mpc.rounds import Message
from umpc.ustat import expression as ex
from umpc.ustat.expression import permute_records
from umpc.ustat.kernel import Kernel
from umpc.ustat.text import to_text

from .kernels import KERNELS, SCHEMA, corner_edges, random_records, record_corners, take
from .studies import clear_total, generator, run_chunk, seed_of

every_kernel = pytest.mark.parametrize("name", KERNELS)
both_rings = pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"ring{ring.bits}")


def check(kernel: Kernel, ring, first, second, label: str) -> None:
    run = run_chunk(kernel, ring, first, second, len(first["x"]), label)
    assert run.total == clear_total(kernel, ring, first, second), f"{kernel.text}, seed {label!r}"


@every_kernel
@both_rings
def test_all_corner_pairs_in_one_chunk(name, ring):
    check(KERNELS[name], ring, *corner_edges(), f"corners {name}")


@every_kernel
def test_each_corner_pair_as_the_only_edge(name):
    first, second = corner_edges()
    for edge in range(0, len(first["x"]), 3):
        row = slice(edge, edge + 1)
        check(KERNELS[name], RINGS[edge % 2], take(first, row), take(second, row), f"edge {edge} {name}")


@every_kernel
@both_rings
def test_all_records_equal(name, ring):
    same = take(record_corners(), np.full(20, 3))
    check(KERNELS[name], ring, same, same, f"equal {name}")


@every_kernel
@both_rings
def test_random_records_with_many_ties(name, ring):
    rng = generator(f"random {name}")
    check(KERNELS[name], ring, random_records(rng, 37), random_records(rng, 37), f"random {name}")


@every_kernel
@both_rings
def test_no_edges_sum_to_nothing(name, ring):
    nothing = take(record_corners(), slice(0, 0))
    assert run_chunk(KERNELS[name], ring, nothing, nothing, 0).total == 0


@every_kernel
def test_one_round_of_p_bits_an_edge_or_none(name):
    run = run_chunk(KERNELS[name], RINGS[1], *corner_edges(), 49)
    lines = [(line.round, line.party, line.message.step, line.message.count, line.message.width) for line in run.sent]
    bits = run.plan.bits * 49
    assert lines == ([(1, 0, "open_bits", bits, 1), (1, 1, "open_bits", bits, 1)] if bits else [])


# --- any symmetric kernel -----------------------------------------------------------------------------------

numbers = st.integers(-3, 3).map(lambda n: ex.Constant(n))
fields = st.builds(ex.Field, st.sampled_from([0, 1]), st.sampled_from(["x", "y", "label"]))


def deeper(values):
    pair = st.tuples(values, values)
    bits = st.one_of(pair.map(lambda p: ex.Less(*p)), pair.map(lambda p: ex.Equal(*p)))
    return st.one_of(
        pair.map(lambda p: ex.Add(*p)),
        pair.map(lambda p: ex.Subtract(*p)),
        pair.map(lambda p: ex.Multiply(*p)),
        values.map(ex.Sign),
        values.map(ex.Absolute),
        bits,
        st.tuples(bits, bits).map(lambda p: ex.And(*p)),
        st.tuples(bits, bits).map(lambda p: ex.Or(*p)),
        bits.map(ex.Not),
        st.tuples(bits, values, values).map(lambda p: ex.Select(*p)),
    )


@settings(max_examples=150, deadline=None)
@given(half=st.recursive(st.one_of(fields, numbers), deeper, max_leaves=7), seed=st.integers(0, 2**32))
def test_any_kernel_made_symmetric(half, seed):
    """f(a, b) + f(b, a): equal to the clear, or refused with a reason."""
    try:
        kernel = Kernel(ex.Add(half, permute_records(half, (1, 0))), SCHEMA)
        plan = compile_pair(kernel, RINGS[1])
    except (KernelError, RangeError) as refusal:
        reasons = ("mixes two records", "expands into more than")
        assert isinstance(refusal, RangeError) or any(r in refusal.message for r in reasons), to_text(half)
        return
    if len(plan.elements) > 300:
        return
    rng = np.random.default_rng(seed)
    check(kernel, RINGS[seed % 2], random_records(rng, 12), random_records(rng, 12), f"any {seed}")


# --- the tests above can fail -------------------------------------------------------------------------------


@pytest.mark.parametrize("bit", range(4))
def test_a_flipped_opened_bit_changes_the_result(bit):
    assert tampered_total(lambda run: None) == tampered_total(lambda run: None)
    assert tampered_total(lambda message: message[bit // 8] ^ 1 << bit % 8) != tampered_total(lambda message: None)


def tampered_total(change) -> int:
    """Kendall over one edge of ring 64, with a change to the first byte that party 1 gets."""
    kernel, ring = KERNELS["kendall_tau"], RINGS[1]
    corners = record_corners()
    plain = run_chunk(kernel, ring, take(corners, slice(0, 1)), take(corners, slice(1, 2)), 1)
    masks = [wire_masks(plain.plan, b"\0" * 32, 1) for _ in (0, 1)]
    inputs = ChunkInputs(plain.masked[0], plain.masked[1], masks[1], 1)
    protocol = evaluate_chunk(1, plain.plan, inputs, plain.dealt[1], plain.seeded[1], tree_hash_of("chunk"))
    mine = next(protocol)
    theirs = bytearray(plain.sent[0].message.payload)
    changed = change(theirs)
    theirs[0] = theirs[0] if changed is None else changed
    try:
        protocol.send([Message(mine.step, bytes(theirs), mine.count, mine.width)])
    except StopIteration as stop:
        return ring.decode(plain.shares[0] + stop.value)
    raise AssertionError("a second round")


def tree_hash_of(label: str) -> FixedKeyHash:
    return FixedKeyHash(seed_of(label + " tree"))


def test_bits_of_another_length_are_refused():
    plain = run_chunk(KERNELS["equality"], RINGS[0], *corner_edges(), 49)
    masks = wire_masks(plain.plan, b"\0" * 32, 49)
    inputs = ChunkInputs(plain.masked[0], plain.masked[1], masks, 49)
    protocol = evaluate_chunk(0, plain.plan, inputs, plain.dealt[0], plain.seeded[0], tree_hash_of("chunk"))
    mine = next(protocol)
    with pytest.raises(EncodingError):
        protocol.send([Message(mine.step, mine.payload + b"\0", mine.count, mine.width)])


# --- round 1 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1_000_000, 200])
@pytest.mark.parametrize("records", [0, 1, 7, 100])
@pytest.mark.parametrize("name", ["kendall_tau", "sign_times_difference", "wide_sign"])
def test_masked_fields_come_back_however_they_are_cut(monkeypatch, limit, records, name):
    monkeypatch.setattr(evaluation, "FIELDS_BYTES", limit)
    plan = compile_pair(KERNELS[name], RINGS[1])
    masked = wire_masks(plan, b"\7" * 32, 120)
    wanted = np.arange(records) + 11
    messages = fields_messages(plan, masked, wanted)
    assert [(n, m.count, len(m.payload)) for n, m in enumerate(messages)] == list(fields_frames(plan, records))
    assert all(len(message.payload) <= limit + 8 * len(plan.wires) for message in messages)
    for sent, values in zip(read_fields(plan, messages), masked, strict=True):
        assert np.array_equal(sent, values[wanted])


def test_a_kernel_without_wires_sends_no_fields():
    plan = compile_pair(KERNELS["separable"], RINGS[1])
    assert plan.wires == () and fields_messages(plan, [], np.arange(5)) == [] == read_fields(plan, [])


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b""])
def test_masked_fields_of_a_wrong_length_are_refused(change):
    plan = compile_pair(KERNELS["kendall_tau"], RINGS[1])
    (message,) = fields_messages(plan, wire_masks(plan, b"\7" * 32, 20), np.arange(20))
    with pytest.raises(EncodingError):
        read_fields(plan, [Message(message.step, change(message.payload), message.count, message.width)])


def test_inputs_show_nothing_of_themselves():
    assert repr(ChunkInputs([np.arange(3)], [], [], 3)) == "ChunkInputs(3 edges, <redacted>)"
