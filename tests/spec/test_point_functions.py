"""Point keys: umpc replays the vectors, and every cell of small tables is expanded."""

from __future__ import annotations

import numpy as np
import pytest

from spec import dcf, point_functions
from spec.cases import point_functions as cases
from spec.field import P
from spec.prg import words
from tests.spec.blocks import blocks_of, integers_of
from tests.spec.replaying import replay_tests
from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.fss.point import PointKeys, add_up, generate
from umpc.mpc.fss.tree import generate_path


def points(cells, places, numbers, roots, hash_key, alpha=None, row=None):
    place, number = (np.array(each, dtype=np.uint64) for each in (places, numbers))
    both = np.stack([blocks_of(each) for each in roots])
    tree_hash = FixedKeyHash(hash_key)
    keys = generate(cells, place, both, tree_hash, alpha)
    first = PointKeys(cells, keys.corrections[:, :1], keys.leaves[:1])
    # a number 0 does not rotate
    alone = [
        add_up(party, first, np.zeros(1, np.uint64), both[party, :1], tree_hash) for party in (0, 1)
    ]
    sums = [add_up(party, keys, number, both[party], tree_hash, row) for party in (0, 1)]
    return {
        "keys": keys.encode(),
        "first_key": [by_cells(each) for each in alone],
        "sums": [by_cells(each) for each in sums],
        "histogram": by_cells(keys.ring.plus(*sums)),
    }


def by_cells(table: np.ndarray) -> list[int]:
    """The specification has the numbers of a cell together."""
    return table.T.reshape(-1).tolist()


def decode(data, cells, count, authenticated=False):
    keys = PointKeys.decode(memoryview(data), cells, count, authenticated)
    corrections = keys.corrections.transpose(1, 0, 2)
    return [
        [integers_of(words), leaf.tolist()]
        for words, leaf in zip(corrections, keys.leaves, strict=True)
    ]


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "point_functions", {"points": points, "decode": decode}
)
HASH_KEY = bytes(16)


def roots_of(label: int) -> list[int]:
    low, high, *others = words(bytes([label]) * 32, 4)
    return [low | high << 64, others[0] | others[1] << 64]


@pytest.mark.parametrize("cells", [2, 3, 7, 8, 9, 16, 17, 31, 40])
def test_every_place_of_a_small_table(cells):
    for place in range(cells):
        roots = roots_of(place)
        key = point_functions.generate(cells, place, roots, HASH_KEY)
        shares = [
            point_functions.expand(party, cells, key, roots[party], HASH_KEY) for party in (0, 1)
        ]
        opened = [(a + b) % 2**64 for a, b in zip(*shares, strict=True)]
        assert opened == [int(cell == place) for cell in range(cells)]
        for number in range(cells):
            assert point_functions.rotate(opened, number, cells)[(place + number) % cells] == 1


ALPHAS = [None, 0, 1, P - 1, 0x0123456789ABCDEF]


@pytest.mark.parametrize("cells", range(2, 41))
def test_umpc_computes_the_same_for_every_place(cells):
    """Both kinds of keys, all places of a table, and each place with another number."""
    places, turn = list(range(cells)), 1 + cells // 3
    numbers = [place * turn % cells for place in places]
    roots = [list(each) for each in zip(*map(roots_of, places), strict=True)]
    values = [(place + number) % cells for place, number in zip(places, numbers, strict=True)]
    due = [values.count(cell) for cell in places]
    for alpha in ALPHAS[cells % 2 :: 2]:
        given = cells, places, numbers, roots, HASH_KEY, alpha
        found = points(*given)
        assert found == cases.points(*given)
        h = found["histogram"]
        if alpha is None:
            assert h == due
        else:
            assert (h[::2], h[1::2]) == (due, [alpha * count % P for count in due])


def test_a_key_over_many_cells_has_the_tree_of_a_comparison_key():
    """Their correction words are equal for the same α and roots, in the specification and in umpc:
    one tree serves both."""
    width, mask, roots = 12, 0b01011001101, roots_of(7)
    corrections, _ = dcf.generate(width, mask, roots, HASH_KEY)
    leaf = mask >> dcf.LEAF_BITS
    cells = 8 << len(corrections)
    assert point_functions.generate(cells, 8 * leaf, roots, HASH_KEY)[0] == corrections
    levels = reversed(range(len(corrections)))
    bits = [np.array([leaf >> level & 1], dtype=np.uint64) for level in levels]
    both = np.stack([blocks_of([root]) for root in roots])
    path = generate_path(bits, both, FixedKeyHash(HASH_KEY))
    assert integers_of(path.corrections) == corrections
