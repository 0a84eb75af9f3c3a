"""Streams are AES-CTR, the tree's hash is AES(x) ⊕ x, and different labels give unrelated seeds."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.crypto.prg import FixedKeyHash, Stream, derive, digest

SEED = bytes(range(32))
LABELS = st.lists(
    st.one_of(st.text("ab1", max_size=4), st.binary(max_size=4), st.integers(0, 2**63)), max_size=4
).map(tuple)


def aes(key: bytes, blocks: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks)


def test_a_derived_seed_is_the_hmac_of_typed_labels_with_their_lengths():
    text = b"s\x05\0\0\0chunk" + b"i\x08\0\0\0" + (7).to_bytes(8, "little") + b"b\x02\0\0\0ab"
    assert derive(SEED, "chunk", 7, b"ab") == hmac.digest(SEED, text, hashlib.sha256)


@settings(max_examples=50)
@given(LABELS, LABELS)
def test_different_labels_give_different_seeds(first, second):
    same_types = [type(label) for label in first] == [type(label) for label in second]
    assert (derive(SEED, *first) == derive(SEED, *second)) == (first == second and same_types)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1,), ("1",)),
        (("a",), (b"a",)),
        (("ab", "c"), ("a", "bc")),
        (("a",), ("a", "")),
        ((0,), (bytes(8),)),
    ],
)
def test_labels_that_read_alike_are_told_apart(first, second):
    assert derive(SEED, *first) != derive(SEED, *second)


def test_a_digest_tells_where_its_parts_end():
    assert digest(b"ab", b"c") != digest(b"a", b"bc") != digest(b"abc")
    assert digest(b"ab") == hashlib.sha256((2).to_bytes(8, "little") + b"ab").digest()


def test_a_stream_is_aes_256_of_the_counter():
    counters = b"".join(block.to_bytes(16, "big") for block in range(4))
    assert Stream(SEED).bytes(64) == aes(SEED, counters)


@given(st.lists(st.integers(0, 40), max_size=6))
def test_a_stream_hands_out_each_byte_once(sizes):
    stream = Stream(SEED)
    assert b"".join(stream.bytes(size) for size in sizes) == Stream(SEED).bytes(sum(sizes))


@pytest.mark.parametrize("sizes", [[0, 5, 17], [1 << 16, 3], [(1 << 17) + 1, 15, 16]])
def test_octets_are_the_same_stream_as_bytes(sizes):
    stream, other = Stream(SEED), Stream(SEED)
    for size in sizes:
        assert stream.octets(size).tobytes() == other.bytes(size)


def test_words_and_bits_are_little_endian():
    raw = Stream(SEED).bytes(16)
    assert Stream(SEED).words(2).tolist() == [
        int.from_bytes(raw[:8], "little"),
        int.from_bytes(raw[8:], "little"),
    ]
    assert Stream(SEED).words(4, np.uint32).tolist() == np.frombuffer(raw, "<u4").tolist()
    assert Stream(SEED).words(4, np.uint32).dtype == np.uint32
    assert Stream(SEED).bits(11).tolist() == [raw[i // 8] >> (i % 8) & 1 for i in range(11)]


def test_nothing_can_be_asked_for():
    assert len(Stream(SEED).words(0)) == len(Stream(SEED).bits(0)) == 0
    assert FixedKeyHash(SEED)(np.empty((0, 2), np.uint64)).shape == (0, 2)


@pytest.mark.parametrize("count", [1, 3, 1000])
def test_the_hash_is_aes_of_x_xor_x(count):
    blocks = Stream(SEED).words(2 * count).reshape(count, 2)
    raw = blocks.tobytes()
    expected = bytes(a ^ b for a, b in zip(aes(SEED[:16], raw), raw, strict=True))
    tree_hash = FixedKeyHash(SEED)
    assert tree_hash(blocks).tobytes() == expected
    assert tree_hash(blocks[:1].copy()).tobytes() == expected[:16]
    assert blocks.tobytes() == raw


def test_hashes_of_two_keys_have_nothing_in_common():
    blocks = Stream(SEED).words(200).reshape(100, 2)
    assert not (FixedKeyHash(SEED)(blocks).copy() == FixedKeyHash(SEED[::-1])(blocks)).any()


def test_a_stream_shows_nothing_of_itself():
    assert repr(Stream(SEED)) == "Stream(<redacted>)"


def test_a_stream_that_begins_later_goes_on_as_the_whole_one():
    whole = Stream(bytes(32)).bytes(1 << 13)
    for block in (1, 7, 255):
        assert Stream(bytes(32), block).bytes(64) == whole[16 * block : 16 * block + 64]
