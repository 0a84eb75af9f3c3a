"""Correlated transfers: t = q ⊕ r·Δ in every batch, and no message tells more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.support.limits import no_mask_of_choices, short_parts
from tests.support.mpc_studies import ALPHA, homogeneity, seed_of, uniformity
from tests.support.transfers import (
    bits_of,
    correlated,
    delta_of,
    extension_rows,
    open_channel,
    set_up,
)
from umpc.crypto.rounds import run_in_memory
from umpc.errors import LocalProtocolError
from umpc.mpc.transfers.batch_columns import combine, stretched_leaves, transpose
from umpc.mpc.transfers.channel_set_up import open_sender, punctured, tree
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.mpc.transfers.message_shapes import CHECK_BYTES, FOLDS, PART, extension_bytes
from umpc.testing import lying

TRANSFERS = 1 << 14


@pytest.mark.parametrize("fold", FOLDS)
def test_every_batch_is_correlated(fold):
    sender, receiver = open_channel(f"batches {fold}", fold)
    done = 0
    for count in (1, 7, 8, 9, 0, 63, 64, 65, 1000, 4096):
        choices = bits_of(f"choices {count}", count)
        t, message = receiver.extend(choices)
        q = sender.extend(message, count)
        assert correlated(q, t, choices, delta_of(f"batches {fold}"))
        assert q.start == done
        done += count


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("count", [8, 64, 65, 128, 200])
def test_a_batch_of_several_parts_is_correlated(fold, count, limit):
    short_parts(limit, 64)
    sender, receiver = open_channel(f"parts {fold}", fold)
    for number in range(3):
        choices = bits_of(f"part {number}", count)
        t, message = receiver.extend(choices)
        assert correlated(sender.extend(message, count), t, choices, delta_of(f"parts {fold}"))


def test_a_batch_longer_than_a_part_is_correlated():
    sender, receiver = open_channel("long")
    choices = bits_of("long", PART + 1001)
    t, message = receiver.extend(choices)
    assert correlated(sender.extend(message, len(choices)), t, choices, delta_of("long"))


@pytest.mark.parametrize("fold", [1, 2, 4])
def test_all_choices_of_eight_transfers(fold):
    sender, receiver = open_channel(f"all {fold}", fold)
    for choices in (np.array(row, dtype=np.uint8) for row in product((0, 1), repeat=8)):
        t, message = receiver.extend(choices)
        assert correlated(sender.extend(message, 8), t, choices, delta_of(f"all {fold}"))


def test_blocks_never_repeat():
    sender, receiver = open_channel("distinct")
    blocks = []
    for _ in range(4):
        _, message = receiver.extend(np.zeros(1000, dtype=np.uint8))
        blocks.append(sender.extend(message, 1000).blocks)
    assert len(np.unique(np.concatenate(blocks), axis=0)) == 4000


@pytest.mark.parametrize("fold", FOLDS)
def test_the_message_has_the_bytes_that_were_predicted(fold):
    _, receiver = open_channel(f"bytes {fold}", fold)
    for count in (1, 8, 1001):
        _, message = receiver.extend(np.zeros(count, dtype=np.uint8))
        assert (
            len(message.payload)
            == extension_bytes(count, fold)
            == message.count * message.width // 8
        )
    whole = (1 << 20) + 128 * (1 << 20) // PART
    assert extension_bytes(1 << 20, fold) == 16 * whole // fold + CHECK_BYTES * (1 << 20) // PART


def test_set_up_takes_three_rounds_and_one_fewer_without_trees():
    for fold, rounds in zip(FOLDS, (2, 3, 3, 3), strict=True):
        transcript = run_in_memory(set_up(fold))[1]
        assert max(sent.round for sent in transcript) == rounds


# Transposition


def test_a_row_of_one_bit_becomes_one_bit_of_a_block():
    for row, column in ((0, 0), (0, 127), (63, 64), (64, 63), (127, 0), (127, 127), (5, 70)):
        rows = np.zeros((128, 16), dtype=np.uint8)
        rows[row, column // 8] = 1 << column % 8
        wanted = np.zeros((128, 2), dtype=np.uint64)
        wanted[column, row // 64] = np.uint64(1) << np.uint64(row % 64)
        assert np.array_equal(transpose(rows), wanted)


def test_row_numbers_become_known_blocks():
    """Row i holds i in each of its bytes; so block j has bit i set where i has bit j mod 8."""
    rows = np.repeat(np.arange(128, dtype=np.uint8)[:, None], 8, axis=1)
    masks = [0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0]
    masks += [0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000]
    wanted = np.array([[mask, mask] for mask in masks] + [[0, 2**64 - 1], [0, 0]], dtype=np.uint64)
    assert np.array_equal(transpose(rows), np.tile(wanted, (8, 1)))


@pytest.mark.parametrize("size", [8, 16, 24, 128, 1000])
def test_transposition_is_numpys(size):
    rows = np.random.default_rng(size).integers(0, 256, (128, size), dtype=np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    wanted = np.ascontiguousarray(np.packbits(bits.T, axis=1, bitorder="little")).view("<u8")
    assert np.array_equal(transpose(rows), wanted)


# Trees


@pytest.mark.parametrize("fold", [1, 2, 4])
def test_a_punctured_tree_lacks_exactly_the_leaf_of_the_digit(fold):
    pairs = [(seed_of(f"{level} 0"), seed_of(f"{level} 1")) for level in range(fold)]
    leaves, sums = tree(pairs)
    assert len(set(leaves)) == 1 << fold
    for digit in range(1 << fold):
        bits = [digit >> level & 1 for level in range(fold)]
        known = punctured(
            [pair[1 - bit] for pair, bit in zip(pairs, bits, strict=True)], bits, sums
        )
        assert known == [leaves[place ^ digit] for place in range(1, 1 << fold)]


@pytest.mark.parametrize("fold", [1, 2, 3, 4])
def test_combining_sums_the_leaves_with_each_bit(fold):
    leaves = np.random.default_rng(fold).integers(0, 256, (3, 1 << fold, 16), dtype=np.uint8)
    columns = np.empty((3, fold, 16), dtype=np.uint8)
    total = combine(leaves, columns)
    assert np.array_equal(total, np.bitwise_xor.reduce(leaves, axis=1))
    for bit in range(fold):
        members = [x for x in range(1 << fold) if x >> bit & 1]
        due = np.bitwise_xor.reduce(leaves[:, members], axis=1)
        assert np.array_equal(columns[:, bit], due)


# Secrecy


def views(fold: int, value: int, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The sender's view if all choices are `value`.

    It is the message's bytes, and these without the leaves that it knows.
    """
    sender, receiver = open_channel(f"secrecy {fold} {label}", fold)
    _, message = receiver.extend(np.full(TRANSFERS, value, dtype=np.uint8))
    rows = extension_rows(message.payload, TRANSFERS, fold)
    known = [
        np.bitwise_xor.reduce(leaves, axis=1)
        for _, leaves in stretched_leaves(sender.leaves.streams(), TRANSFERS // 8)
    ]
    return rows.reshape(-1), (rows ^ np.concatenate(known)).reshape(-1)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("fold", FOLDS)
def test_the_receivers_message_does_not_depend_on_its_choices(fold):
    zeros, ones = views(fold, 0, "zeros"), views(fold, 1, "ones")
    for zero, one in zip(zeros, ones, strict=True):
        assert homogeneity(zero, one) > ALPHA
        assert uniformity(zero, 256) > ALPHA and uniformity(one, 256) > ALPHA


@pytest.mark.usefixtures("both_ways")
def test_the_test_of_secrecy_notices_a_missing_stream():
    with no_mask_of_choices():
        zeros, ones = views(4, 0, "zeros"), views(4, 1, "ones")
    assert homogeneity(zeros[0], ones[0]) < ALPHA
    assert uniformity(zeros[0], 256) < ALPHA


@pytest.mark.usefixtures("in_numpy")
def test_the_test_of_secrecy_notices_a_missing_leaf_that_is_not_stretched():
    """Only the leaf that the sender lacks hides r from it: without its stream, the view shows r."""
    sender, _ = open_channel("secrecy 1 zeros", 1)
    digit = int(sender.delta[0]) & 1

    def careless(honest, streams, width):
        for digits, leaves in honest(streams, width):
            if not streams.lacks_first:
                leaves[:, digit] = 0
            yield digits, leaves

    with lying("node", bytes=careless):
        # the row of Δ's lowest bit
        seen = [views(1, value, "zeros")[1][: TRANSFERS // 8] for value in (0, 1)]
    assert homogeneity(seen[0], seen[1]) < ALPHA


def test_blocks_are_uniform_and_the_two_labels_of_a_wire_have_different_colours():
    sender, receiver = open_channel("uniform")
    t, message = receiver.extend(bits_of("uniform", TRANSFERS))
    q = sender.extend(message, TRANSFERS)
    other = q.blocks ^ sender.delta
    for blocks in (q.blocks, t.blocks, other):
        assert uniformity(blocks.view(np.uint8).reshape(-1), 256) > ALPHA
    assert np.all((q.blocks[:, 0] & np.uint64(1)) != (other[:, 0] & np.uint64(1)))


def test_no_repr_shows_a_secret():
    sender, receiver = open_channel("repr")
    t, message = receiver.extend(np.ones(4, dtype=np.uint8))
    q = sender.extend(message, 4)
    shown = "".join(map(repr, (sender, receiver, q, t, message)))
    for word in (*sender.delta, *q.blocks.reshape(-1), *t.blocks.reshape(-1)):
        assert str(int(word)) not in shown and f"{int(word):x}" not in shown
    assert shown.count("<redacted>") == 4


# What we ourselves may ask


def test_delta_is_random_with_its_lowest_bit_set():
    deltas = np.stack([fresh_delta(seed_of(f"delta {number}")) for number in range(200)])
    assert len(np.unique(deltas, axis=0)) == 200
    bits = np.unpackbits(deltas.view(np.uint8), axis=1, bitorder="little")
    assert bits[:, 0].all()
    assert stats.chi2.sf(((bits[:, 1:].sum(axis=0) - 100.0) ** 2 / 50).sum(), 127) > ALPHA


@pytest.mark.parametrize(
    "words, kind", [([2, 1], np.uint64), ([1, 1, 1], np.uint64), ([1, 1], np.int64)]
)
def test_another_offset_is_refused(words, kind):
    with pytest.raises(LocalProtocolError):
        next(open_sender(seed_of("sender"), np.array(words, dtype=kind), b"session", "alice"))


@pytest.mark.parametrize("choices", [[0, 2], [[0, 1]], [0.5]])
def test_choices_are_bits(choices):
    _, receiver = open_channel("bits")
    kind = np.float64 if choices == [0.5] else np.uint8
    with pytest.raises(LocalProtocolError):
        receiver.extend(np.array(choices, dtype=kind))


@pytest.mark.parametrize("fold", [0, 3, 16])
def test_other_folds_are_refused(fold):
    for side in set_up(fold):
        with pytest.raises(LocalProtocolError):
            next(side)
