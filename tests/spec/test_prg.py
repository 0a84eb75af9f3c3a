"""Seeds, streams, packed integers and the hash of trees."""

from __future__ import annotations

import numpy as np

from tests.spec.blocks import blocks_of, integers_of
from tests.spec.replaying import replay_tests
from umpc.crypto.prg import FixedKeyHash, Stream, derive, digest
from umpc.crypto.ring import pack, unpack


def seeds_and_streams(seed, labels):
    derived = derive(seed, *labels)
    return {
        "derived": derived,
        "stream": Stream(derived).bytes(40),
        "words_64": Stream(derived).words(2).tolist(),
        "words_32": Stream(derived).words(2, np.uint32).tolist(),
        "bits": Stream(derived).bits(12).tolist(),
        "digest": digest(seed, derived),
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "prg",
    {
        "seeds_and_streams": seeds_and_streams,
        "tree_hashes": lambda key, blocks: integers_of(FixedKeyHash(key)(blocks_of(blocks))),
        "pack": lambda values, width: pack(np.array(values, dtype=np.uint64), width),
        "unpack": lambda packed, count, width: unpack(packed, count, width).tolist(),
    },
)
