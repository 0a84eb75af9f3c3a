"""Point keys: their sums are the histogram for all small tables, and a key alone says nothing."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.mpc_studies import ALPHA, EDGES, homogeneity, seed_of
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.errors import EncodingError
from umpc.mpc.fss.point import (
    PointKeys,
    add_up,
    add_up_in_numpy,
    expand,
    generate,
    generate_in_numpy,
    key_bytes,
    levels,
)

HASH = FixedKeyHash(seed_of("tree"))


def deal(cells: int, places: np.ndarray, label: str) -> tuple[PointKeys, np.ndarray]:
    roots = Stream(seed_of(label)).words(4 * len(places)).reshape(2, -1, 2)
    return generate(cells, places, roots, HASH), roots


def histogram(keys: PointKeys, roots: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    one, other = (add_up(party, keys, numbers, roots[party], HASH) for party in (0, 1))
    return one + other


@pytest.mark.parametrize("cells", [*range(1, 20), 24, 25, 63, 64, 65])
def test_every_place_and_every_number(cells):
    every = np.arange(cells, dtype=np.uint64)
    places, numbers = np.repeat(every, cells), np.tile(every, cells)
    keys, roots = deal(cells, places, f"exhaustive {cells}")
    shares = [expand(party, keys, roots[party], HASH) for party in (0, 1)]
    assert np.array_equal(shares[0] + shares[1], places[:, None] == every)
    values = (places + numbers) % np.uint64(cells)
    # a table for each person, and one of all
    for person in range(0, len(places), 1 + len(places) // 50):
        some = slice(person, person + 1)
        alone = PointKeys(cells, keys.corrections[:, some], keys.leaves[some])
        table = histogram(alone, roots[:, some], numbers[some])
        assert np.array_equal(table, every == values[person])
    assert np.array_equal(histogram(keys, roots, numbers), np.full(cells, cells))


CASES = st.tuples(st.integers(2, 3000), st.integers(0, 40), st.binary(min_size=8, max_size=8))


@given(CASES)
def test_any_people_over_any_table(case):
    cells, people, label = case
    stream = Stream(seed_of(label.hex()))
    places, values = (stream.words(people) % np.uint64(cells) for _ in range(2))
    keys, roots = deal(cells, places, label.hex())
    numbers = (values + np.uint64(cells) - places) % np.uint64(cells)
    due = np.bincount(values.astype(np.int64), minlength=cells)
    assert np.array_equal(histogram(keys, roots, numbers), due)
    # numpy is the reference of whatever ran above
    again = generate_in_numpy(cells, places, roots, HASH)
    assert again.encode() == keys.encode()
    for party in (0, 1):
        ours = add_up(party, keys, numbers, roots[party], HASH)
        assert np.array_equal(ours, add_up_in_numpy(party, keys, numbers, roots[party], HASH))


@pytest.mark.parametrize("cells", [(1 << 17) - 1, (1 << 17) + 9, 1 << 20])
def test_large_tables(cells):
    places = np.array([0, cells - 1, cells // 3], dtype=np.uint64)
    numbers = np.array([cells - 1, 1, 5], dtype=np.uint64)
    keys, roots = deal(cells, places, f"large {cells}")
    table = histogram(keys, roots, numbers)
    values = sorted(((places + numbers) % np.uint64(cells)).tolist())
    assert np.flatnonzero(table).tolist() == values and table.sum() == 3


@pytest.mark.parametrize(("cells", "due"), [(8, 64), (9, 80), (1 << 10, 176), (1 << 17, 288)])
def test_a_key_takes_the_bytes_it_says_and_comes_back(cells, due):
    keys, _ = deal(cells, np.arange(5, dtype=np.uint64), "encode")
    data = keys.encode()
    assert len(data) == 5 * key_bytes(cells) and key_bytes(cells) == due == 16 * levels(cells) + 64
    again = PointKeys.decode(memoryview(data), cells, 5)
    assert np.array_equal(again.corrections, keys.corrections)
    assert np.array_equal(again.leaves, keys.leaves)


@pytest.mark.parametrize("change", [-1, 1, 16])
def test_keys_of_a_wrong_length_are_refused(change):
    with pytest.raises(EncodingError, match="3 point keys of 20 cells"):
        PointKeys.decode(memoryview(bytes(3 * key_bytes(20) + change)), 20, 3)


@pytest.mark.parametrize("number", [20, 21, 2**63, 2**64 - 1])
def test_a_number_that_is_no_cell_is_refused_and_not_told(number):
    keys, roots = deal(20, np.array([3, 4], dtype=np.uint64), "number")
    numbers = np.array([3, number], dtype=np.uint64)
    with pytest.raises(EncodingError, match="not below 20") as refused:
        add_up(0, keys, numbers, roots[0], HASH)
    assert number == 20 or str(number) not in str(refused.value)


def test_keys_show_nothing_of_themselves():
    assert "redacted" in repr(deal(9, np.zeros(1, np.uint64), "repr")[0])


def test_the_wire_format_of_a_key_stays_as_it_is():
    """A known answer: whoever changes it changes what processes of one version say."""
    keys, _ = deal(1000, np.arange(64, dtype=np.uint64) * np.uint64(15), "known")
    assert hashlib.sha256(keys.encode()).hexdigest()[:16] == "516bda7f09aff131"


# --- the tests above can fail ---------------------------------------------------------------------


@pytest.mark.parametrize("bit", [0, 2, 3, 63])
@pytest.mark.parametrize("level", range(levels(100)))
def test_a_flipped_bit_of_a_correction_gives_a_wrong_table(level, bit):
    """Bit 1 is the value bit, which nobody reads."""
    keys, roots, numbers = people()
    keys.corrections[level, :, 0] ^= np.uint64(1 << bit)
    assert np.count_nonzero(histogram(keys, roots, numbers)) > 40


@pytest.mark.parametrize("number", range(8))
def test_a_changed_number_of_a_leaf_gives_a_wrong_table(number):
    keys, roots, numbers = people()
    keys.leaves[:, number] += np.uint64(1)
    assert histogram(keys, roots, numbers).sum() != len(numbers)


def people() -> tuple[PointKeys, np.ndarray, np.ndarray]:
    keys, roots = deal(100, np.full(40, 77, np.uint64), "tampered")
    return keys, roots, np.arange(40, dtype=np.uint64)


# --- a key alone says nothing of its cell ---------------------------------------------------------


@pytest.mark.parametrize("place", [0, 13])
def test_every_bit_of_a_key_is_balanced(place):
    keys, _ = deal(20, np.full(EDGES, place, np.uint64), f"balanced {place}")
    raw = keys.leaves.tobytes(), keys.corrections.tobytes()
    leaves, words = (np.frombuffer(each, dtype=np.uint8) for each in raw)
    leaves = np.unpackbits(leaves.reshape(EDGES, 64), axis=1)
    words = np.unpackbits(words.reshape(levels(20), EDGES, 16), axis=2)
    ones = np.concatenate([leaves.sum(axis=0), words.sum(axis=1).reshape(-1)]).astype(float)
    z = np.abs(ones - EDGES / 2) / np.sqrt(EDGES / 4)
    assert z.max() < stats.norm.isf(ALPHA / 2 / len(z)), f"bit {z.argmax()}, N = {EDGES}"


@pytest.mark.parametrize("party", [0, 1])
def test_one_partys_view_has_the_same_law_for_two_cells(party):
    """Key, root, and own shares at both cells: their low bits, jointly."""
    first, second = (view(place, party) for place in (0, 13))
    p = homogeneity(first, second)
    assert p > ALPHA, f"a view depends on the cell: p = {p:.1e}, N = {EDGES}, party {party}"


@pytest.mark.parametrize("party", [0, 1])
def test_power_the_same_test_finds_a_cell_in_a_leaf_without_its_pad(party):
    views = []
    for place in (0, 13):
        keys, roots = deal(20, np.full(EDGES, place, np.uint64), f"power {place}")
        keys.leaves[:] = np.arange(8) == place % 8
        views.append(joint(keys, roots, party))
    assert homogeneity(*views) < ALPHA


def view(place: int, party: int) -> np.ndarray:
    keys, roots = deal(20, np.full(EDGES, place, np.uint64), f"view {place} {party}")
    return joint(keys, roots, party)


def joint(keys: PointKeys, roots: np.ndarray, party: int) -> np.ndarray:
    """8 bits that a party holds, as one category."""
    shares = expand(party, keys, roots[party], HASH)
    numbers = [keys.leaves[:, 0], keys.leaves[:, 5], roots[party, :, 0] >> np.uint64(3)]
    numbers += [keys.corrections[0, :, 0], keys.corrections[0, :, 0] >> np.uint64(2)]
    numbers += [shares[:, 0], shares[:, 13], keys.corrections[1, :, 0]]
    return sum((each & np.uint64(1)).astype(np.int64) << i for i, each in enumerate(numbers))
