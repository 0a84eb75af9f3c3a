"""The comparison gate's keys, and the gate on every difference of small rings."""

from __future__ import annotations

import numpy as np
import pytest

from spec import dcf
from spec.prg import words
from tests.spec.blocks import blocks_of, integers_of
from tests.spec.replaying import replay_tests
from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.masked.dcf import ComparisonKeys, evaluate, generate


def gates(width, masks, masked, roots, hash_key):
    mask, masked = (np.array(each, dtype=np.uint64) for each in (masks, masked))
    both = np.stack([blocks_of(each) for each in roots])
    tree_hash = FixedKeyHash(hash_key)
    keys = generate(width, mask, both, tree_hash)
    shares = [np.stack(evaluate(party, keys, masked, both[party], tree_hash)) for party in (0, 1)]
    opened = shares[0] ^ shares[1]
    opened[0] ^= (mask >> np.uint64(width - 1)).astype(np.uint8)
    return {
        "keys": keys.encode(),
        "shares": [each.T.tolist() for each in shares],
        "less_and_equal": opened.T.tolist(),
    }


def decode(data, width, count):
    keys = ComparisonKeys.decode(memoryview(data), width, count)
    corrections = keys.corrections.transpose(1, 0, 2)
    leaves = keys.leaves.astype("<u4")
    return [
        [integers_of(words), leaf.tobytes()]
        for words, leaf in zip(corrections, leaves, strict=True)
    ]


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "dcf", {"gates": gates, "decode": decode}
)


@pytest.mark.parametrize("width", [2, 3, 5, 6, 7])
def test_every_difference_under_every_mask(width):
    roots = [low | high << 64 for low, high in (words(bytes(32), 2), words(b"\1" * 32, 2))]
    half, key_of_trees = 1 << width - 1, bytes(16)
    for mask in range(2 * half):
        key = dcf.generate(width, mask, roots, key_of_trees)
        for difference in range(-half + 1, half):
            masked = (difference + mask) % (2 * half)
            (less, equal), (other_less, other_equal) = (
                dcf.evaluate(party, width, key, masked, roots[party], key_of_trees)
                for party in (0, 1)
            )
            assert less ^ other_less ^ mask >> width - 1 == (difference < 0)
            assert equal ^ other_equal == (difference == 0)
