"""Numbers of a ring, products of masked numbers, and ANDs of shared bits."""

from __future__ import annotations

import numpy as np

from spec.sharing import check_all, check_all_ands
from tests.spec.replaying import replaced, replay_tests
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.transfers.ot_products import BitTriples, and_bits


def bits(row) -> np.ndarray:
    return np.array(row, dtype=np.uint8)


def ands(x, y, triples, names, last_sent=None):
    parties = []
    for party, (one, other, triple) in enumerate(zip(x, y, triples, strict=True)):
        others = names[:party] + names[party + 1 :]
        shares = BitTriples(*map(bits, triple))
        parties.append(and_bits(party == 0, bits(one), bits(other), shares, *others))
    if last_sent is not None:
        parties[-1] = replaced(parties[-1], "ot_open_bits", last_sent)
    shares, transcript = run_in_memory(parties)
    return {
        "messages": [line.message.payload for line in transcript],
        "shares": [share.tolist() for share in shares],
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "sharing",
    {
        "encode": lambda value, bits: Ring(bits).encode(value),
        "decode": lambda element, bits: Ring(bits).decode(element),
        "and_bits": ands,
    },
)


def test_all_products_of_a_small_ring_under_all_masks():
    assert check_all(3) == 8**4


def test_all_ands_of_all_shares():
    assert check_all_ands() == 2**9
