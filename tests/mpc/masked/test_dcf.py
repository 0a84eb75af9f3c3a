"""The sign gate is right for all small widths, and a key alone says nothing about its mask."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from tests.support.mpc_studies import ALPHA, EDGES, homogeneity, seed_of, uniformity
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.errors import EncodingError
from umpc.mpc.masked.dcf import LEAF_BYTES, ComparisonKeys, evaluate, generate, key_bytes, levels

HASH = FixedKeyHash(seed_of("tree"))


def uniform_roots(count: int, label: str) -> np.ndarray:
    return Stream(seed_of(label)).words(4 * count).reshape(2, count, 2)


def deal(width: int, mask: np.ndarray, label: str) -> tuple[ComparisonKeys, np.ndarray]:
    roots = uniform_roots(len(mask), label)
    return generate(width, mask, roots, HASH), roots


def compare(
    width: int, mask: np.ndarray, difference: np.ndarray, label: str
) -> tuple[np.ndarray, np.ndarray]:
    """Both bits, reconstructed: ([d < 0], [d = 0])."""
    keys, roots = deal(width, mask, label)
    return reconstruct(keys, roots, mask, difference)


def reconstruct(keys, roots, mask, difference) -> tuple[np.ndarray, np.ndarray]:
    masked = (difference + mask) & np.uint64((1 << keys.width) - 1)
    shares = [evaluate(party, keys, masked, roots[party], HASH) for party in (0, 1)]
    top = (mask >> np.uint64(keys.width - 1)).astype(np.uint8) & 1
    return shares[0][0] ^ shares[1][0] ^ top, shares[0][1] ^ shares[1][1]


def signed(width: int, values: np.ndarray) -> np.ndarray:
    """d in [−2^(w−1), 2^(w−1)) of its w low bits."""
    shift = np.uint64(64 - width)
    return (values.astype(np.uint64) << shift).view(np.int64) >> np.int64(64 - width)


@pytest.mark.parametrize("width", range(2, 10))
def test_every_mask_and_every_difference(width):
    every = np.arange(1 << width, dtype=np.uint64)
    mask, difference = np.repeat(every, 1 << width), np.tile(every, 1 << width)
    less, equal = compare(width, mask, difference, f"exhaustive {width}")
    assert np.array_equal(less, signed(width, difference) < 0)
    assert np.array_equal(equal, difference == 0)


@pytest.mark.parametrize("width", range(10, 65))
def test_random_masks_with_differences_at_all_corners(width):
    low = np.uint64((1 << width) - 1)
    mask = Stream(seed_of(f"mask {width}")).words(400) & low
    difference = Stream(seed_of(f"difference {width}")).words(400) & low
    corners = [0, 1, -1, (1 << (width - 1)) - 1, -(1 << (width - 1)), 31, 32, 33, -31, -32, -33]
    difference[:220] = (
        np.tile(np.array([c & (2**64 - 1) for c in corners], dtype=np.uint64), 20) & low
    )
    mask[:8] = [0, low, 1, low >> np.uint64(1), (int(low) >> 1) + 1, 31, 32, 63]
    less, equal = compare(width, mask, difference, f"random {width}")
    assert np.array_equal(less, signed(width, difference) < 0), f"width {width}"
    assert np.array_equal(equal, difference == 0), f"width {width}"


def test_batches_and_single_gates_agree():
    mask = Stream(seed_of("batches")).words(20_000) & np.uint64(1023)
    less, equal = compare(10, mask, mask[::-1] & np.uint64(1023), "batches")
    assert np.array_equal(less, signed(10, mask[::-1]) < 0) and np.array_equal(
        equal, mask[::-1] == 0
    )


def test_no_gates():
    less, equal = compare(12, np.empty(0, np.uint64), np.empty(0, np.uint64), "none")
    assert len(less) == len(equal) == 0


@pytest.mark.parametrize("width", [2, 6, 7, 18, 41, 64])
def test_a_key_takes_the_bytes_it_says_and_comes_back(width):
    keys, _ = deal(width, np.arange(5, dtype=np.uint64) & np.uint64(3), "encode")
    data = keys.encode()
    assert len(data) == 5 * key_bytes(width) == 5 * (16 * max(0, width - 6) + LEAF_BYTES)
    again = ComparisonKeys.decode(memoryview(data), width, 5)
    assert np.array_equal(again.corrections, keys.corrections) and np.array_equal(
        again.leaves, keys.leaves
    )


@pytest.mark.parametrize("change", [-1, 1, 12])
def test_a_key_of_a_wrong_length_is_refused(change):
    with pytest.raises(EncodingError, match="3 keys of width 9"):
        ComparisonKeys.decode(memoryview(bytes(3 * key_bytes(9) + change)), 9, 3)


def test_keys_show_nothing_of_themselves():
    assert "redacted" in repr(deal(9, np.zeros(1, np.uint64), "repr")[0])


def test_the_wire_format_of_a_key_stays_as_it_is():
    """A known answer: whoever changes it changes what nodes of one version say to each other."""
    keys, _ = deal(18, np.arange(64, dtype=np.uint64) * np.uint64(4095), "known")
    assert hashlib.sha256(keys.encode()).hexdigest()[:16] == "f448c813d2424ca3"


# --- the tests above can fail ---------------------------------------------------------------------


@pytest.mark.parametrize("bit", range(0, 3))
@pytest.mark.parametrize("level", range(levels(9)))
def test_a_flipped_low_bit_of_a_correction_gives_a_wrong_result(level, bit):
    keys, roots = deal(9, np.full(512, 137, np.uint64), "tampered")
    keys.corrections[level, :, 0] ^= np.uint64(1 << bit)
    assert wrong_somewhere(keys, roots, 137)


@pytest.mark.parametrize("level", range(levels(9)))
def test_a_flipped_seed_bit_of_a_correction_gives_a_wrong_result(level):
    keys, roots = deal(9, np.full(512, 137, np.uint64), "tampered")
    keys.corrections[level, :, 1] ^= np.uint64(1 << 40)
    assert wrong_somewhere(keys, roots, 137)


@pytest.mark.parametrize("word", range(3))
@pytest.mark.parametrize("bit", [0, 9, 31])
def test_a_flipped_bit_of_a_leaf_gives_a_wrong_result(word, bit):
    keys, roots = deal(9, np.full(512, 137, np.uint64), "tampered")
    keys.leaves[:, word] ^= np.uint32(1 << bit)
    assert wrong_somewhere(keys, roots, 137)


def test_keys_of_another_mask_or_another_attempt_give_a_wrong_result():
    keys, roots = deal(9, np.full(512, 137, np.uint64), "tampered")
    assert wrong_somewhere(keys, roots, 138)
    other, _ = deal(9, np.full(512, 137, np.uint64), "another attempt")
    assert wrong_somewhere(other, roots, 137)


def wrong_somewhere(keys: ComparisonKeys, roots: np.ndarray, mask: int) -> bool:
    difference = np.arange(512, dtype=np.uint64)
    less, equal = reconstruct(keys, roots, np.full(512, mask, np.uint64), difference)
    return not (
        np.array_equal(less, signed(9, difference) < 0) and np.array_equal(equal, difference == 0)
    )


# --- a key alone says nothing of its mask ---------------------------------------------------------


@pytest.mark.parametrize("width", [4, 9])
@pytest.mark.parametrize("mask", [0, 5])
def test_every_bit_of_a_key_is_balanced(width, mask):
    keys, _ = deal(width, np.full(EDGES, mask, np.uint64), f"balanced {width} {mask}")
    raw = np.frombuffer(keys.leaves.tobytes() + keys.corrections.tobytes(), dtype=np.uint8)
    leaves = np.unpackbits(raw[: 12 * EDGES].reshape(EDGES, 12), axis=1)
    words = np.unpackbits(raw[12 * EDGES :].reshape(levels(width), EDGES, 16), axis=2)
    ones = np.concatenate([leaves.sum(axis=0), words.sum(axis=1).reshape(-1)]).astype(float)
    z = np.abs(ones - EDGES / 2) / np.sqrt(EDGES / 4)
    assert z.max() < stats.norm.isf(ALPHA / 2 / len(z)), (
        f"bit {z.argmax()}, width {width}, mask {mask}, N = {EDGES}"
    )


@pytest.mark.parametrize("party", [0, 1])
@pytest.mark.parametrize("width", [4, 9])
def test_one_partys_view_has_the_same_law_for_two_masks(width, party):
    """Key, root and own shares at two points, for masks 0 and 5: their low bits, jointly."""
    first, second = (view(width, mask, party, f"view {width} {party} {mask}") for mask in (0, 5))
    p = homogeneity(first, second)
    assert p > ALPHA, (
        f"a view depends on the mask: p = {p:.1e}, N = {EDGES}, width {width}, party {party}"
    )


@pytest.mark.parametrize("party", [0, 1])
def test_power_the_same_test_finds_a_mask_in_a_leaf_without_its_pad(party):
    """A dealer that forgets the leaves' pads deals the truth tables themselves."""
    views = []
    for mask in (0, 5):
        keys, roots = deal(4, np.full(EDGES, mask, np.uint64), f"power {mask}")
        keys.leaves[:] = [1 << mask, 0, (1 << mask) - 1]
        views.append(joint(keys, roots, party))
    assert homogeneity(*views) < ALPHA


@pytest.mark.parametrize("party", [0, 1])
def test_one_partys_shares_of_both_bits_are_balanced(party):
    for width, point in ((4, 5), (9, 5), (9, 300)):
        keys, roots = deal(width, np.full(EDGES, 5, np.uint64), f"shares {width}")
        less, equal = evaluate(party, keys, np.full(EDGES, point, np.uint64), roots[party], HASH)
        p = uniformity(less + 2 * equal, 4)
        assert p > ALPHA, (
            f"shares are unbalanced: p = {p:.1e}, N = {EDGES}, width {width}, d̂ = {point}"
        )


def view(width: int, mask: int, party: int, label: str) -> np.ndarray:
    return joint(*deal(width, np.full(EDGES, mask, np.uint64), label), party)


def joint(keys: ComparisonKeys, roots: np.ndarray, party: int) -> np.ndarray:
    """8 bits that a party holds, as one category: leaf, own root, shares at d̂ = 5 and d̂ = 3."""
    parts = [
        keys.leaves[:, 0] >> 5 & 1,
        keys.leaves[:, 2] >> 4 & 1,
        (roots[party, :, 0] >> np.uint64(3)) & np.uint64(1),
    ]
    parts.append(keys.corrections[-1, :, 0] & np.uint64(1) if len(keys.corrections) else parts[-1])
    for point in (5, 3):
        parts += evaluate(party, keys, np.full(EDGES, point, np.uint64), roots[party], HASH)
    return sum(part.astype(np.int64) << i for i, part in enumerate(parts))


def test_inputs_stay_as_they_are_and_need_not_be_contiguous():
    mask, roots = (
        np.arange(40, dtype=np.uint64),
        Stream(seed_of("roots")).words(160).reshape(2, 40, 2),
    )
    before = mask.tobytes() + roots.tobytes()
    keys = generate(18, mask[::2], roots[:, ::2], HASH)
    again = generate(18, mask[::2].copy(), roots[:, ::2].copy(), HASH)
    shares = evaluate(1, keys, mask[::2], roots[1, ::2], HASH)
    assert keys.encode() == again.encode()
    assert np.array_equal(shares, evaluate(1, keys, mask[::2].copy(), roots[1, ::2].copy(), HASH))
    assert mask.tobytes() + roots.tobytes() == before
