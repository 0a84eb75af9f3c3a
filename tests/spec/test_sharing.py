"""Numbers of a ring, products of masked numbers, and ANDs of shared bits."""

from __future__ import annotations

from itertools import product

import numpy as np

from spec import sharing
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
    for x, y, r, s in product(range(8), repeat=4):
        masked = [sharing.encode(x + r, 3), sharing.encode(y + s, 3)]
        products = sharing.share(r * s, [sharing.encode(x + 3 * y + 1, 3)], 3)
        shares = sharing.multiply(masked, [[r, 0], [0, s]], products, 3)
        assert sharing.reveal(shares, 3) == sharing.decode(x * y, 3)


def test_all_ands_of_all_shares():
    for x0, x1, y0, y1, a0, a1, b0, b1, c0 in product((0, 1), repeat=9):
        triples = [[[a0], [b0], [c0]], [[a1], [b1], [c0 ^ (a0 ^ a1) & (b0 ^ b1)]]]
        found = sharing.and_bits([[x0], [x1]], [[y0], [y1]], triples, ["north", "south"])
        (one,), (other,) = found["shares"]
        assert one ^ other == (x0 ^ x1) & (y0 ^ y1)
