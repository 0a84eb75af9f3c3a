"""umpc.ustat.text: a secret order is uniform, also where words are equal."""

from __future__ import annotations

import os
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from umpc.ustat.text import secret_order


def told(*answers: list[int]):
    """Words that come one list after the other, each in the upper bits."""
    waiting = iter(answers)

    def words(count: int):
        found = np.array(next(waiting), dtype=np.uint64)
        assert len(found) == count
        return found << np.uint64(32)

    return words


@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 9, 1000])
def test_every_place_comes_once(size):
    order = secret_order(size, lambda count: np.frombuffer(os.urandom(8 * count), np.uint64))
    assert order.dtype == np.int64 and sorted(order) == list(range(size))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_each_order_follows_from_as_many_words(size):
    """Over all distinct words each order comes once; over all words each comes equally often."""
    found = Counter(
        tuple(secret_order(size, told(list(drawn)))) for drawn in permutations(range(size))
    )
    assert set(found) == set(permutations(range(size))) and set(found.values()) == {1}


def test_equal_words_are_ordered_by_further_ones():
    """Further words decide between places whose words are equal."""
    assert list(secret_order(3, told([7, 1, 7], [5, 2]))) == [1, 2, 0]
    assert list(secret_order(3, told([7, 1, 7], [2, 5]))) == [1, 0, 2]
    assert list(secret_order(4, told([6, 3, 3, 6], [0, 1], [9, 8]))) == [1, 2, 3, 0]
    assert list(secret_order(2, told([1, 1], [1, 1], [1, 0]))) == [1, 0]
    orders = [
        tuple(secret_order(2, told(first, second)))
        for first, second in product([[4, 4]], [[0, 1], [1, 0]])
    ]
    assert Counter(orders) == {(0, 1): 1, (1, 0): 1}


def test_the_lower_bits_of_a_word_decide_nothing():
    """They hold the place, and would let an earlier one come first."""
    words = np.array([(5 << 32) + 3, (5 << 32) + 1, 5 << 32], dtype=np.uint64)
    again = iter([words, np.array([3, 2, 1], dtype=np.uint64) << np.uint64(32)])
    assert list(secret_order(3, lambda count: next(again))) == [2, 1, 0]
