"""The check of a receiver's choices: honest ones pass, and tests of bits of Δ are found."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.limits import short_parts
from tests.support.mpc_studies import seed_of
from tests.support.transfers import bits_of, correlated, delta_of
from umpc.crypto.rounds import Message
from umpc.errors import RemoteProtocolError
from umpc.mpc.transfers import correlated_ot
from umpc.mpc.transfers.channel_set_up import bits_of as bits_of_delta
from umpc.mpc.transfers.channel_set_up import receiver_channel, sender_channel
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver
from umpc.mpc.transfers.correlation_check import RowHash, prove, with_mask
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHECK_BYTES,
    checked_width,
    extension_bytes,
    trees_bytes,
)

pytestmark = pytest.mark.usefixtures("both_ways")

FOLDS = (1, 2, 4)
PAIRS = [(seed_of(f"{number} 0"), seed_of(f"{number} 1")) for number in range(BLOCK_BITS)]


def ends(fold: int, label: str = "ends", *, checked: bool = True):
    """A sender with its Δ, and a receiver, over known base seeds."""
    check_seed = seed_of("check") if checked else b""
    delta = delta_of(label)
    keys = [pair[1 - bit] for pair, bit in zip(PAIRS, bits_of_delta(delta).tolist(), strict=True)]
    receiver, trees = receiver_channel(PAIRS, b"session", fold, check_seed)
    assert len(trees) == trees_bytes(fold, checked=checked)
    sender = sender_channel(delta, keys, trees, b"session", "eve", fold, checked=checked)
    return sender, receiver


class Liar(CorrelatedReceiver):
    """A receiver that flips its choice of the first transfer in one digit only.

    It proves the choices of all other digits.
    """

    def __init__(self, receiver: CorrelatedReceiver, digit: int):
        super().__init__(receiver._leaves, receiver.session, receiver._check_seed)
        self.digit = digit

    def extend(self, choices):
        blocks, message = super().extend(choices)
        rows = BLOCK_BITS // self.fold
        size = (len(message.payload) - (CHECK_BYTES if self._check_seed else 0)) // rows
        payload = bytearray(message.payload)
        payload[self.digit * size] ^= 1
        if self._check_seed:
            payload[rows * size :] = self.proven(choices, bytes(payload[: rows * size]))
        return blocks, Message(message.step, bytes(payload), message.count, message.width, 1)

    def proven(self, choices, sent: bytes) -> bytes:
        """The best proof that the liar can make: its own columns, hashed after what it sent."""
        again = CorrelatedReceiver(self._leaves, self.session, self._check_seed)
        kept = {}

        def spy(row_hash, packed, columns):
            kept["columns"] = columns.copy()
            return bytes(CHECK_BYTES)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(correlated_ot, "prove", spy)
            again.extend(choices)
        packed = with_mask(np.packbits(choices, bitorder="little"), again_mask(again))
        return prove(RowHash.after(self._leaves.root, 1, 0, sent), packed, kept["columns"])


def again_mask(receiver: CorrelatedReceiver) -> bytes:
    """The mask of a receiver's first batch."""
    first = CorrelatedReceiver(receiver._leaves, receiver.session, receiver._check_seed)
    return first._mask(0)


@pytest.mark.parametrize("fold", FOLDS)
def test_honest_batches_pass_and_have_the_bytes_that_were_predicted(fold):
    sender, receiver = ends(fold)
    for count in (1, 8, 127, 128, 129, 1000, 0):
        choices = bits_of(f"choices {count}", count)
        t, message = receiver.extend(choices)
        assert len(message.payload) == extension_bytes(count, fold, checked=True)
        assert correlated(sender.extend(message, count), t, choices, delta_of("ends"))


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("count", [1, 63, 200])
def test_a_senders_own_bits_turn_its_blocks_by_delta(checked, count, monkeypatch):
    short_parts(monkeypatch, 64)
    choices, own = bits_of("choices", count), bits_of("own", count)
    for fold in FOLDS:
        sender, receiver = ends(fold, checked=checked)
        t, message = receiver.extend(choices)
        blocks = sender.extend(message, count, turned=own)
        assert correlated(blocks, t, choices ^ own, sender.delta)
        t, message = receiver.extend(choices)
        assert correlated(sender.extend(message, count), t, choices, sender.delta)


def test_forks_and_batches_of_several_parts_are_checked_too(monkeypatch):
    short_parts(monkeypatch, 64)
    sender, receiver = (end.fork("a", 1) for end in ends(4))
    choices = bits_of("parts", 200)
    t, message = receiver.extend(choices)
    assert len(message.payload) == extension_bytes(200, 4, checked=True)
    assert correlated(sender.extend(message, 200), t, choices, delta_of("ends"))
    flipped = bytearray(receiver.extend(choices)[1].payload)
    flipped[-CHECK_BYTES - 1] ^= 1
    with pytest.raises(RemoteProtocolError):
        sender.extend(Message(message.step, bytes(flipped), message.count, 8, 2), 200)


def test_a_check_costs_128_transfers_and_its_hashes():
    for fold in FOLDS:
        more = extension_bytes(4096, fold, checked=True) - extension_bytes(4096, fold)
        assert more == 128 * 16 // fold + CHECK_BYTES


def flipped_message(receiver, digit: int) -> tuple[np.ndarray, Message]:
    choices = bits_of("attack", 256)
    blocks, message = Liar(receiver, digit).extend(choices)
    return blocks.blocks, message


@pytest.mark.parametrize("fold", [1, 4])
def test_without_a_check_a_liar_reads_bits_of_the_offset(fold):
    """q_0 changes exactly by the bits of Δ in the digit, which later messages show."""
    for digit in (0, 5, 31):
        honest = ends(fold, checked=False)
        q = honest[0].extend(honest[1].extend(bits_of("attack", 256))[1], 256).blocks
        sender, receiver = ends(fold, checked=False)
        _, message = flipped_message(receiver, digit)
        changed = sender.extend(message, 256).blocks ^ q
        seen = np.unpackbits(changed[0].astype("<u8").view(np.uint8), bitorder="little")
        place = slice(digit * fold, (digit + 1) * fold)
        assert np.array_equal(seen[place], bits_of_delta(delta_of("ends"))[place])
        assert not changed[1:].any()


@pytest.mark.parametrize("fold", [1, 4])
def test_a_liar_is_named_unless_the_bits_that_it_tests_are_zero(fold):
    """Whoever tests c bits guesses them: it passes with 2^−c, and is named otherwise."""
    bits = bits_of_delta(delta_of("ends")).reshape(-1, fold)
    for digit in range(0, len(bits), 9):
        sender, receiver = ends(fold)
        _, message = flipped_message(receiver, digit)
        if bits[digit].any():
            with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
                sender.extend(message, 256)
            assert (caught.value.culprit, caught.value.step) == ("eve", "ot_extend")
        else:
            sender.extend(message, 256)


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
    _, trees = receiver_channel(PAIRS, b"session", fold, seed_of("check"))
    named = 0
    for place in (0, 32, 100, len(trees) - 1):
        changed = bytearray(trees)
        changed[place] ^= 1
        try:
            sender_channel(delta, keys, bytes(changed), b"session", "eve", fold, checked=True)
        except RemoteProtocolError as error:
            assert (error.culprit, error.step) == ("eve", "ot_trees")
            named += 1
    # A changed sum is read, and found, for one value of its bit of Δ; the hash always.
    assert 1 <= named <= 4
    read = 32 * (1 - bits[1])
    changed = bytearray(trees)
    changed[read] ^= 1
    with pytest.raises(RemoteProtocolError, match="trees"):
        sender_channel(delta, keys, bytes(changed), b"session", "eve", fold, checked=True)
    sender_channel(delta, keys, bytes(changed), b"session", "eve", fold)  # unchecked: not found


def test_each_batch_and_each_part_of_it_has_a_mask_of_its_own(monkeypatch):
    masks = []

    def spy(choices, mask):
        masks.append(mask)
        return with_mask(choices, mask)

    monkeypatch.setattr(correlated_ot, "with_mask", spy)
    short_parts(monkeypatch, 128)
    _, receiver = ends(1)
    for channel in (receiver, receiver, receiver.fork("a"), receiver.fork("b")):
        channel.extend(bits_of("masks", 300))
    assert len(masks) == 4 * 3 and len(set(masks)) == len(masks)
    assert all(len(set(mask)) > 4 for mask in masks)


@pytest.mark.parametrize("width", [1, 16, 17])
def test_a_masked_row_ends_with_the_mask_and_nothing_else_is_added(width):
    """Without the mask h(r) would be a function of the choices, and public."""
    choices = np.full(width, 255, dtype=np.uint8)
    row = with_mask(choices, bytes(range(1, 17)))
    assert len(row) == checked_width(width) and row[-16:].tobytes() == bytes(range(1, 17))
    assert row[:width].tobytes() == choices.tobytes() and not row[width:-16].any()
