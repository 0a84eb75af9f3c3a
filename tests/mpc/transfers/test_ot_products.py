"""Products of transfers are right for all small values; corrections tell the receiver nothing."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.transfers import bits_of, numbers_of, open_channel, triples
from umpc.crypto.prg import derive
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.transfers import ot_products
from umpc.mpc.transfers.correlated_ot import Blocks
from umpc.mpc.transfers.message_shapes import EXTEND, MULTIPLES, extension_bytes, multiple_bits
from umpc.mpc.transfers.ot_products import (
    KEY_BLOCKS,
    and_bits,
    hash_blocks,
    receive_multiples,
    send_multiples,
)
from umpc.testing import lying

WIDTHS = (1, 7, 8, 9, 31, 32, 33, 40, 63, 64)
S, R = open_channel("products")


@pytest.fixture(scope="module")
def channels():
    """Between three parties: (i, j) with i < j, i the sender."""
    return {(i, j): open_channel(f"{i} {j}") for i, j in ((0, 1), (0, 2), (1, 2))}


def low(values: np.ndarray, width: int) -> np.ndarray:
    return values & np.uint64((1 << width) - 1)


def both(sending, receiving):
    return run_in_memory([sending, receiving])[0]


def multiply(x: np.ndarray, b: np.ndarray, width: int, ends=None) -> np.ndarray:
    ends = ends or (S, R)
    return both(send_multiples(ends[0], x, width), receive_multiples(ends[1], b, width, "alice"))


def corners(width: int) -> np.ndarray:
    top = (1 << width) - 1
    fixed = np.array([0, 1 & top, top, top >> 1, 1 << (width - 1)], dtype=np.uint64)
    return np.concatenate([fixed, low(numbers_of(f"width {width}", 27), width)])


@pytest.mark.parametrize("width", WIDTHS)
def test_number_times_bit(width):
    x, b = np.tile(corners(width), 2), np.repeat(np.array([0, 1], dtype=np.uint8), 32)
    shares = multiply(x, b, width)
    assert np.array_equal(low(shares[0] + shares[1], width), x * b)


def test_and_of_all_shared_bits():
    every = np.arange(16, dtype=np.uint8).repeat(50)
    x0, x1, y0, y1 = (every >> place & 1 for place in range(4))
    mine, theirs = triples(len(every), "and")
    shares = both(and_bits(True, x0, y0, mine, "bob"), and_bits(False, x1, y1, theirs, "alice"))
    assert np.array_equal(shares[0] ^ shares[1], (x0 ^ x1) & (y0 ^ y1))


def test_an_empty_row():
    none, no_bits = np.empty(0, np.uint64), np.empty(0, np.uint8)
    assert [len(share) for share in multiply(none, no_bits, 64)] == [0, 0]


# More than two parties: what the module's docstring says of them


def test_three_parties_multiply_shared_bits_by_pairs(channels):
    x, y = bits_of("x", 90).reshape(3, 30), bits_of("y", 90).reshape(3, 30)
    shares = [(x[k] & y[k]).astype(np.uint64) for k in range(3)]
    for (i, j), ends in channels.items():
        numbers = np.concatenate([x[i], y[i]]).astype(np.uint64)
        halves = multiply(numbers, np.concatenate([y[j], x[j]]), 1, ends)
        for party, half in zip((i, j), halves, strict=True):
            shares[party] = shares[party] ^ half[:30] ^ half[30:]
    both_bits = np.bitwise_xor.reduce(x) & np.bitwise_xor.reduce(y)
    assert np.array_equal(np.bitwise_xor.reduce(shares), both_bits)


def test_three_parties_convert_a_shared_bit(channels):
    bits = np.arange(8, dtype=np.uint8)[None, :] >> np.arange(3, dtype=np.uint8)[:, None] & 1
    shares = list(bits.astype(np.uint64))
    for party, other in ((0, 1), (0, 2), (1, 2)):
        halves = multiply(shares[party], bits[other], 64, channels[party, other])
        shares[party] = shares[party] - np.uint64(2) * halves[0]
        shares[other] = shares[other] - np.uint64(2) * halves[1]
    assert np.array_equal(sum(shares), (bits[0] ^ bits[1] ^ bits[2]).astype(np.uint64))


def test_a_shared_number_times_a_shared_bit(channels):
    x = numbers_of("x", 32).reshape(2, 16)
    b = np.stack([np.tile([0, 0, 1, 1], 4), np.tile([0, 1, 0, 1], 4)]).astype(np.uint8)
    back = open_channel("1 0")
    total = np.zeros(16, dtype=np.uint64)
    for party, ends in ((0, channels[0, 1]), (1, back)):
        own = b[party].astype(np.uint64)
        signed = x[party] - np.uint64(2) * own * x[party]
        total += x[party] * own + np.sum(multiply(signed, b[1 - party], 64, ends), axis=0)
    assert np.array_equal(total, x.sum(axis=0) * (b[0] ^ b[1]))


# The hash


def aes(key: bytes, block: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)


@pytest.mark.parametrize("start", [0, 5, KEY_BLOCKS - 2])
def test_the_hash_is_tmmo_under_the_key_of_its_million(start):
    blocks = numbers_of("hash", 8).reshape(4, 2)
    hashed = hash_blocks(Blocks(start, blocks), b"session")
    for place, (block, got) in enumerate(zip(blocks, hashed, strict=True)):
        number = start + place
        key = derive(derive(bytes(32), "ot hash", b"session"), number // KEY_BLOCKS)[:16]
        once = int.from_bytes(aes(key, block.tobytes()), "little")
        twice = int.from_bytes(aes(key, (once ^ number).to_bytes(16, "little")), "little")
        assert got.tobytes() == (once ^ twice).to_bytes(16, "little")


def test_parts_do_not_show_in_the_hash(limit):
    blocks = Blocks(3, numbers_of("hash", 200).reshape(100, 2))
    whole = hash_blocks(blocks, b"session")
    limit(ot_products, PART=16)
    assert np.array_equal(hash_blocks(blocks, b"session"), whole)


def test_equal_blocks_hash_apart_by_number_and_session():
    blocks = np.tile(numbers_of("hash", 2), (100, 1))
    hashed = [hash_blocks(Blocks(0, blocks), session) for session in (b"session", b"session 2")]
    assert len(np.unique(np.concatenate(hashed), axis=0)) == 200


def test_no_transfer_is_hashed_twice():
    seen = []

    def watched(honest, blocks, session):
        seen.extend(range(blocks.start, blocks.start + len(blocks.blocks)))
        return honest(blocks, session)

    ends = open_channel("once")
    with lying("node", hash_blocks=watched):
        for _ in range(2):
            multiply(numbers_of("x", 5), bits_of("b", 5), 20, ends)
    # once by the receiver, both labels by the sender
    assert sorted(seen) == sorted(3 * [*range(2 * 5)])


# Secrecy


def pads_seen(number: int, choice: int, label: str) -> np.ndarray:
    """Low bytes of (the pad that the receiver knows) ⊕ (the one it lacks).

    The correction gives the second to whoever guesses that all numbers are 0. With a good hash the
    two have nothing in common: the result is uniform whatever the number is.
    """
    count = 1 << 14
    ends = open_channel(label)
    numbers, choices = (
        np.full(count, number, dtype=np.uint64),
        np.full(count, choice, dtype=np.uint8),
    )
    sides = [send_multiples(ends[0], numbers, 64), receive_multiples(ends[1], choices, 64, "alice")]
    (_, share), transcript = run_in_memory(sides)
    correction = np.frombuffer(transcript[-1].message.payload, dtype="<u8")
    own = share - correction if choice else share
    return (own ^ (own + correction if choice else own - correction)).astype(np.uint8)


@pytest.mark.parametrize("choice", [0, 1])
def test_a_correction_says_nothing_of_the_number(choice):
    seen = [pads_seen(number, choice, f"number {number}") for number in (0, 77)]
    assert all(uniformity(view, 256) > ALPHA for view in seen)
    assert homogeneity(*seen) > ALPHA


@pytest.mark.parametrize("choice", [0, 1])
def test_the_test_of_secrecy_notices_a_missing_hash(choice):
    """Without the hash the two pads differ by Δ in every transfer."""
    with lying("node", hash_blocks=lambda honest, blocks, session: blocks.blocks):
        seen = [pads_seen(number, choice, f"number {number}") for number in (0, 77)]
    assert all(uniformity(view, 256) < ALPHA for view in seen)
    assert homogeneity(*seen) < ALPHA


def test_all_shares_are_uniform_to_their_holders():
    x, b = np.full(4096, 3, np.uint64), np.ones(4096, np.uint8)
    shares = multiply(x, b, 16)
    assert all(uniformity(low(share, 8), 256) > ALPHA for share in shares)
    assert all(uniformity(share >> np.uint64(8), 256) > ALPHA for share in shares)


# Cost


@pytest.mark.parametrize("width", WIDTHS)
def test_bytes_are_as_predicted(width):
    x, b, count = numbers_of("x", 24), bits_of("b", 24), 24
    sides = [send_multiples(S, x, width), receive_multiples(R, b, width, "alice")]
    sent = run_in_memory(sides)[1]
    assert [(s.party, s.round, s.message.step) for s in sent] == [
        (1, 1, EXTEND),
        (0, 2, MULTIPLES),
    ]
    assert [len(s.message.payload) for s in sent] == [
        extension_bytes(count),
        count * multiple_bits(width) // 8,
    ]
