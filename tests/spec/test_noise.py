"""Noise: a node's own draws bit by bit, the committee's thresholds, and both laws."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest

from tests.spec.replaying import replay_tests
from umpc.crypto.prg import Stream
from umpc.dp.calibration import sample_share
from umpc.dp.committee import CommitteeLaplace
from umpc.mpc.masked.material import committee_size


def own_shares(honest, ratio, seed, draws):
    stream = Stream(seed)

    def bits(count: int) -> int:
        return int.from_bytes(stream.bytes(count // 8), "little")

    return [sample_share(honest, Fraction(*ratio), bits) for _ in range(draws)]


def share_of_a_dead_source(honest, ratio, word):
    return sample_share(
        honest, Fraction(*ratio), lambda count: int.from_bytes(word * (count // 64), "little")
    )


def law_of_committee(ratio):
    law = CommitteeLaplace(Fraction(ratio[0]), ratio[1])
    return {"thresholds": list(law.thresholds), "weights": list(law.weights)}


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "noise",
    {
        "own_shares": own_shares,
        "share_of_a_dead_source": share_of_a_dead_source,
        "law_of_committee": law_of_committee,
        "committee_sizes": lambda nodes, colluding: [
            committee_size(each, colluding) for each in nodes
        ],
    },
)


def convolved(one: list[Fraction], other: list[Fraction]) -> list[Fraction]:
    return [sum(one[i] * other[k - i] for i in range(k + 1)) for k in range(len(one))]


@pytest.mark.parametrize("honest", [1, 2, 3, 5])
def test_the_parts_of_h_nodes_add_up_to_the_geometric_law(honest):
    """Coefficients of ((1 − q)/(1 − qz))^r: those of r = 1/h, h times, are those of r = 1."""
    q, terms, r = Fraction(2, 3), 12, Fraction(1, honest)
    polya = [prod(((r + i) / (i + 1) for i in range(k)), start=q**k) for k in range(terms)]
    total = [Fraction(k == 0) for k in range(terms)]
    for _ in range(honest):
        total = convolved(total, polya)
    assert total == [q**k for k in range(terms)]


@pytest.mark.parametrize("digits", [1, 3, 6])
def test_independent_digits_make_the_geometric_law(digits):
    """With odds q^(2^i) to 1, a number of B digits has probability in proportion to q^number."""
    q = Fraction(3, 4)
    odds = [q ** (1 << i) for i in range(digits)]
    chances = [
        prod(odds[i] if number >> i & 1 else 1 for i in range(digits))
        for number in range(1 << digits)
    ]
    assert chances == [q**number for number in range(1 << digits)]
