"""The check of a receiver's choices: honest ones pass, and tests of bits of Δ are found."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from tests.support.limits import short_parts
from tests.support.mpc_studies import seed_of
from tests.support.transfers import bits_of, correlated, delta_of, lie_in_digits
from umpc.crypto.rounds import Message
from umpc.errors import RemoteProtocolError
from umpc.mpc.transfers.channel_set_up import bits_of as bits_of_delta
from umpc.mpc.transfers.channel_set_up import receiver_channel, sender_channel
from umpc.mpc.transfers.correlated_ot import RowHash, packed_row
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHECK_BYTES,
    extension_bytes,
    row_bytes,
    trees_bytes,
)
from umpc.testing import lying, without

pytestmark = pytest.mark.usefixtures("both_ways")

FOLDS = (1, 2, 4)
CHECK = "choices are the same in all digits"
PAIRS = [(seed_of(f"{number} 0"), seed_of(f"{number} 1")) for number in range(BLOCK_BITS)]


def ends(fold: int, label: str = "ends"):
    """A sender with its Δ, and a receiver, over known base seeds."""
    delta = delta_of(label)
    keys = [pair[1 - bit] for pair, bit in zip(PAIRS, bits_of_delta(delta).tolist(), strict=True)]
    receiver, trees = receiver_channel(PAIRS, b"session", seed_of("check"), fold)
    assert len(trees) == trees_bytes(fold)
    return sender_channel(delta, keys, trees, b"session", "eve", fold), receiver


@pytest.mark.parametrize("fold", FOLDS)
def test_honest_batches_pass_and_have_the_bytes_that_were_predicted(fold):
    sender, receiver = ends(fold)
    for count in (1, 8, 127, 128, 129, 1000, 0):
        choices = bits_of(f"choices {count}", count)
        t, message = receiver.extend(choices)
        assert len(message.payload) == extension_bytes(count, fold)
        assert correlated(sender.extend(message, count), t, choices, delta_of("ends"))


@pytest.mark.parametrize("count", [1, 63, 200])
def test_a_senders_own_bits_turn_its_blocks_by_delta(count, limit):
    short_parts(limit, 64)
    choices, own = bits_of("choices", count), bits_of("own", count)
    for fold in FOLDS:
        sender, receiver = ends(fold)
        t, message = receiver.extend(choices)
        blocks = sender.extend(message, count, turned=own)
        assert correlated(blocks, t, choices ^ own, sender.delta)
        t, message = receiver.extend(choices)
        assert correlated(sender.extend(message, count), t, choices, sender.delta)


def test_forks_and_batches_of_several_parts_are_checked_too(limit):
    short_parts(limit, 64)
    sender, receiver = (end.fork("a", 1) for end in ends(4))
    choices = bits_of("parts", 200)
    t, message = receiver.extend(choices)
    assert len(message.payload) == extension_bytes(200, 4)
    assert correlated(sender.extend(message, 200), t, choices, delta_of("ends"))
    flipped = bytearray(receiver.extend(choices)[1].payload)
    flipped[-CHECK_BYTES - 1] ^= 1
    with pytest.raises(RemoteProtocolError):
        sender.extend(Message(message.step, bytes(flipped), message.count, 8, 2), 200)


def test_a_check_costs_128_transfers_and_its_hashes():
    for fold in FOLDS:
        assert extension_bytes(4096, fold) == (4096 + 128) * 16 // fold + CHECK_BYTES


@pytest.mark.parametrize("fold", [1, 4])
def test_without_the_check_a_liar_reads_bits_of_the_offset(fold):
    """q_0 changes exactly by the bits of Δ in the digit, which later messages show."""
    choices = bits_of("attack", 256)
    for digit in (0, 5, 31):
        honest = ends(fold)
        q = honest[0].extend(honest[1].extend(choices)[1], 256).blocks
        sender, receiver = ends(fold)
        _, message = lie_in_digits(digit)(receiver, choices)
        with without(CHECK):
            changed = sender.extend(message, 256).blocks ^ q
        seen = np.unpackbits(changed[0].astype("<u8").view(np.uint8), bitorder="little")
        place = slice(digit * fold, (digit + 1) * fold)
        assert np.array_equal(seen[place], bits_of_delta(delta_of("ends"))[place])
        assert not changed[1:].any()


@pytest.mark.parametrize("fold", [1, 4])
def test_a_liar_is_named_unless_the_bits_that_it_tests_are_zero(fold):
    """Whoever tests c bits guesses them: it passes with 2^−c, and is named otherwise.

    The number of lies that pass over all digits of some Δ is what 2^−c says, to four deviations.
    """
    choices = bits_of("attack", 256)
    passed = []
    for label, digit in product(("one", "two", "three"), range(1, BLOCK_BITS // fold)):
        sender, receiver = ends(fold, label)
        _, message = lie_in_digits(digit)(receiver, choices)
        passed.append(not bits_of_delta(sender.delta).reshape(-1, fold)[digit].any())
        if not passed[-1]:
            with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
                sender.extend(message, 256)
            assert (caught.value.culprit, caught.value.step) == ("eve", "ot_extend")
        else:
            sender.extend(message, 256)
    odds = 2.0**-fold
    deviation = (len(passed) * odds * (1 - odds)) ** 0.5
    assert sum(passed) > 0 and abs(sum(passed) - len(passed) * odds) < 4 * deviation


def test_a_lie_in_two_digits_passes_only_if_all_their_bits_were_guessed():
    choices = bits_of("attack", 256)
    guessed = [not bits.any() for bits in bits_of_delta(delta_of("two")).reshape(-1, 2)]
    outcomes = set()
    for one, two in combinations(range(1, 24, 3), 2):
        sender, receiver = ends(2, "two")
        _, message = lie_in_digits(one, two)(receiver, choices)
        outcomes.add((guessed[one], guessed[two]))
        if guessed[one] and guessed[two]:
            sender.extend(message, 256)
        else:
            with pytest.raises(RemoteProtocolError, match="do not fit together"):
                sender.extend(message, 256)
    assert len(outcomes) == 4, "the power of the test: each of both was guessed, and was not"


def test_the_proof_binds_everything_that_was_sent():
    """A flipped bit anywhere, in rows or proof, is found where Δ makes it matter."""
    message = ends(1)[1].extend(bits_of("bind", 256))[1]
    assert ends(1)[0].extend(message, 256).start == 0
    ones = np.flatnonzero(bits_of_delta(delta_of("ends")))
    size = (len(message.payload) - CHECK_BYTES) // BLOCK_BITS
    for place in (ones[0] * size, ones[3] * size + size - 1, -1, -CHECK_BYTES, -CHECK_BYTES + 20):
        payload = bytearray(message.payload)
        payload[place] ^= 4
        with pytest.raises(RemoteProtocolError):
            ends(1)[0].extend(Message(message.step, bytes(payload), message.count, 8, 1), 256)


def test_the_hash_is_linear_and_the_mask_hides_the_choices():
    row_hash = RowHash.after(b"channel", 1, 0, b"sent")
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (3, 64), dtype=np.uint8)
    rows[2] = rows[0] ^ rows[1]
    hashes = row_hash(rows)
    assert np.array_equal(hashes[0] ^ hashes[1], hashes[2])
    assert not row_hash(np.zeros((1, 64), dtype=np.uint8)).any()
    # All single bits of the mask block have independent hashes: the map is invertible.
    unit = np.zeros((128, 64), dtype=np.uint8)
    unit[np.arange(128), 48 + np.arange(128) // 8] = 1 << np.arange(128) % 8
    assert rank(np.unpackbits(row_hash(unit), axis=1)) == 128
    other = RowHash.after(b"channel", 2, 0, b"sent")
    assert not np.array_equal(other(rows), hashes)


def rank(matrix: np.ndarray) -> int:
    """The rank of a matrix of bits."""
    rows = [int("".join(map(str, row)), 2) for row in matrix.tolist()]
    found = 0
    while rows:
        pivot = rows.pop()
        if pivot:
            found += 1
            low = pivot & -pivot
            rows = [row ^ pivot if row & low else row for row in rows]
    return found


# Trees


@pytest.mark.parametrize("fold", [2, 4])
def test_trees_that_fit_only_some_offsets_are_found(fold):
    delta = delta_of("ends")
    bits = bits_of_delta(delta).tolist()
    keys = [pair[1 - bit] for pair, bit in zip(PAIRS, bits, strict=True)]
    _, trees = receiver_channel(PAIRS, b"session", seed_of("check"), fold)
    named = 0
    for place in (0, 32, 100, len(trees) - 1):
        changed = bytearray(trees)
        changed[place] ^= 1
        try:
            sender_channel(delta, keys, bytes(changed), b"session", "eve", fold)
        except RemoteProtocolError as error:
            assert (error.culprit, error.step) == ("eve", "ot_trees")
            named += 1
    # A changed sum is read, and found, for one value of its bit of Δ; the hash always.
    assert 1 <= named <= 4
    read = 32 * (1 - bits[1])
    changed = bytearray(trees)
    changed[read] ^= 1
    with pytest.raises(RemoteProtocolError, match="trees"):
        sender_channel(delta, keys, bytes(changed), b"session", "eve", fold)
    with without("trees of seeds are trees"):
        sender_channel(delta, keys, bytes(changed), b"session", "eve", fold)


def test_each_batch_and_each_part_of_it_has_a_mask_of_its_own(limit):
    masks = []

    def spy(honest, bits, mask):
        masks.append(mask)
        return honest(bits, mask)

    short_parts(limit, 128)
    _, receiver = ends(1)
    with lying("node", packed_row=spy):
        for channel in (receiver, receiver, receiver.fork("a"), receiver.fork("b")):
            channel.extend(bits_of("masks", 300))
    assert len(masks) == 4 * 3 and len(set(masks)) == len(masks)
    assert all(len(set(mask)) > 4 for mask in masks)


@pytest.mark.parametrize("count", [1, 128, 129])
def test_a_row_ends_with_the_mask_and_nothing_else_is_added(count):
    """Without the mask h(r) would be a function of the choices, and public."""
    row = packed_row(np.ones(count, dtype=np.uint8), bytes(range(1, 17)))
    assert len(row) == row_bytes(count) and row[-16:].tobytes() == bytes(range(1, 17))
    assert np.unpackbits(row[:-16], bitorder="little").tolist() == [1] * count + [0] * (
        -count % 128
    )
