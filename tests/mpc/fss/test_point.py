"""Point keys: their sums are the histogram for all small tables, and a key alone says nothing."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.mpc_studies import ALPHA, EDGES, homogeneity, seed_of
from umpc.crypto import field
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


A = 0x0123456789ABCDEF
"""The dealer's α of authenticated keys."""
ALPHAS = (None, 0, 1, field.P - 1, A)
"""Plain keys, and authenticated ones."""


def deal(
    cells: int, places: np.ndarray, label: str, alpha: int | None = None
) -> tuple[PointKeys, np.ndarray]:
    roots = Stream(seed_of(label)).words(4 * len(places)).reshape(2, -1, 2)
    return generate(cells, places, roots, HASH, alpha), roots


def histogram(
    keys: PointKeys, roots: np.ndarray, numbers: np.ndarray, row: int | None = None
) -> np.ndarray:
    one, other = (add_up(party, keys, numbers, roots[party], HASH, row) for party in (0, 1))
    return keys.ring.plus(one, other)


def with_products(table: np.ndarray, alpha: int | None) -> np.ndarray:
    """The sum of both shares of a table: (cells,), or (2, cells) with α times it."""
    counts = table.astype(np.uint64)
    if alpha is None:
        return counts
    return np.stack([counts, field.multiply(counts, field.constant(alpha))])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("cells", [*range(1, 20), 24, 25, 40, 63, 64, 65])
def test_every_place_and_every_number(cells, alpha):
    every = np.arange(cells, dtype=np.uint64)
    places, numbers = np.repeat(every, cells), np.tile(every, cells)
    keys, roots = deal(cells, places, f"exhaustive {cells}", alpha)
    shares = [expand(party, keys, roots[party], HASH) for party in (0, 1)]
    opened = keys.ring.plus(*shares).reshape(len(places), cells, -1)
    ones = places[:, None] == every
    assert np.array_equal(opened[..., 0], ones)
    assert alpha is None or np.array_equal(opened[..., 1], ones * np.uint64(alpha))
    values = (places + numbers) % np.uint64(cells)
    # a table for each person, and one of all
    for person in range(0, len(places), 1 + len(places) // 50):
        some = slice(person, person + 1)
        alone = PointKeys(cells, keys.corrections[:, some], keys.leaves[some])
        table = histogram(alone, roots[:, some], numbers[some])
        assert np.array_equal(table, with_products(every == values[person], alpha))
    whole = with_products(np.full(cells, cells), alpha)
    assert np.array_equal(histogram(keys, roots, numbers), whole)


def moved(places: np.ndarray, numbers: np.ndarray, cells: int, row: int) -> np.ndarray:
    """Where both functions of a place and a number lead, in rows of these many cells."""
    (a, b), (u, v) = (np.divmod(each, np.uint64(row)) for each in (places, numbers))
    return (a + u) % np.uint64(cells // row) * np.uint64(row) + (b + v) % np.uint64(row)


@pytest.mark.parametrize("alpha", [None, A])
@pytest.mark.parametrize(("rows", "row"), [(d1, d2) for d1 in range(1, 7) for d2 in range(1, 13)])
def test_every_place_and_every_number_of_two_dimensions(rows, row, alpha):
    cells = rows * row
    every = np.arange(cells, dtype=np.uint64)
    numbers = np.repeat(every, cells)
    keys, roots = deal(cells, np.tile(every, cells), f"rows {rows} {row}", alpha)
    # tables of a number and of people at each of the first places
    for number in range(cells):
        for below in {cells, cells // 2 + 1, number}:
            some = slice(cells * number, cells * number + below)
            part = PointKeys(cells, keys.corrections[:, some], keys.leaves[some])
            table = histogram(part, roots[:, some], numbers[some], row)
            due = np.isin(every, moved(every[:below], numbers[some], cells, row))
            assert np.array_equal(table, with_products(due, alpha))


CASES = st.tuples(
    st.integers(2, 4096),
    st.integers(1, 4096),
    st.integers(0, 40),
    st.binary(min_size=8, max_size=8),
    st.none() | st.integers(0, field.P - 1),
)


@given(CASES)
def test_any_people_over_any_table(case):
    most, row, people, label, alpha = case
    cells = max(1, most // row) * row
    stream = Stream(seed_of(label.hex()))
    places, numbers = (stream.words(people) % np.uint64(cells) for _ in range(2))
    keys, roots = deal(cells, places, label.hex(), alpha)
    due = np.bincount(moved(places, numbers, cells, row).astype(np.int64), minlength=cells)
    assert np.array_equal(histogram(keys, roots, numbers, row), with_products(due, alpha))
    # numpy is the reference of whatever ran above
    again = generate_in_numpy(cells, places, roots, HASH, alpha)
    assert again.encode() == keys.encode()
    for party in (0, 1):
        given = party, keys, numbers, roots[party], HASH, row
        assert np.array_equal(add_up(*given), add_up_in_numpy(*given))


@pytest.mark.parametrize("alpha", [None, A])
@pytest.mark.parametrize("cells", [(1 << 17) - 1, (1 << 17) + 9, 1 << 20])
def test_large_tables(cells, alpha):
    places = np.array([0, cells - 1, cells // 3], dtype=np.uint64)
    numbers = np.array([cells - 1, 1, 5], dtype=np.uint64)
    keys, roots = deal(cells, places, f"large {cells}", alpha)
    values = (places + numbers) % np.uint64(cells)
    due = with_products(np.bincount(values.astype(np.int64), minlength=cells), alpha)
    assert np.array_equal(histogram(keys, roots, numbers), due)


@pytest.mark.parametrize("alpha", [None, A])
@pytest.mark.parametrize(("cells", "due"), [(8, 64), (9, 80), (1 << 10, 176), (1 << 17, 288)])
def test_a_key_takes_the_bytes_it_says_and_comes_back(cells, due, alpha):
    keys, _ = deal(cells, np.arange(5, dtype=np.uint64), "encode", alpha)
    data = keys.encode()
    assert due == key_bytes(cells) == 16 * levels(cells) + 64
    assert len(data) == 5 * (due if alpha is None else key_bytes(cells, authenticated=True))
    assert key_bytes(cells, authenticated=True) == due + 64
    again = PointKeys.decode(memoryview(data), cells, 5, alpha is not None)
    assert np.array_equal(again.corrections, keys.corrections)
    assert np.array_equal(again.leaves, keys.leaves)


@pytest.mark.parametrize("change", [-1, 1, 16])
def test_keys_of_a_wrong_length_are_refused(change):
    with pytest.raises(EncodingError, match="3 point keys of 20 cells"):
        PointKeys.decode(memoryview(bytes(3 * key_bytes(20) + change)), 20, 3)


@pytest.mark.parametrize("place", [0, 7, 15, 47])
@pytest.mark.parametrize("word", [field.P, field.P + 1, 2**64 - 1])
def test_words_that_are_no_elements_are_refused(place, word):
    data = np.zeros(3 * key_bytes(20, True) // 8, dtype="<u8")
    data[place - 48] = word
    with pytest.raises(EncodingError, match="words from p on") as refused:
        PointKeys.decode(memoryview(data.tobytes()), 20, 3, authenticated=True)
    assert str(word) not in str(refused.value)
    data[place - 48] = field.P - 1
    PointKeys.decode(memoryview(data.tobytes()), 20, 3, authenticated=True)


@pytest.mark.parametrize("alpha", [None, A])
@pytest.mark.parametrize("number", [20, 21, 2**63, 2**64 - 1])
def test_a_number_that_is_no_cell_is_refused_and_not_told(number, alpha):
    keys, roots = deal(20, np.array([3, 4], dtype=np.uint64), "number", alpha)
    numbers = np.array([3, number], dtype=np.uint64)
    with pytest.raises(EncodingError, match="not below 20") as refused:
        add_up(0, keys, numbers, roots[0], HASH)
    assert number == 20 or str(number) not in str(refused.value)


def test_keys_show_nothing_of_themselves():
    assert "redacted" in repr(deal(9, np.zeros(1, np.uint64), "repr")[0])


def test_the_wire_format_of_a_key_stays_as_it_is():
    """A known answer: whoever changes it changes what processes of one version say."""
    for alpha, due in (None, "516bda7f09aff131"), (A, "5e50702e78b0ca89"):
        keys, _ = deal(1000, np.arange(64, dtype=np.uint64) * np.uint64(15), "known", alpha)
        assert hashlib.sha256(keys.encode()).hexdigest()[:16] == due


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


def people(alpha: int | None = None) -> tuple[PointKeys, np.ndarray, np.ndarray]:
    keys, roots = deal(100, np.full(40, 77, np.uint64), "tampered", alpha)
    return keys, roots, np.arange(40, dtype=np.uint64)


def fits(shares: list[np.ndarray]) -> bool:
    """Whether m = α·h."""
    h, m = field.add(*shares)
    return np.array_equal(m, field.multiply(h, field.constant(A)))


@pytest.mark.parametrize("liar", [0, 1])
def test_products_fit_no_other_vector_than_that_of_all_people(liar):
    """A party that rotates one key wrongly, leaves a person out, or changes h alone."""
    keys, roots, numbers = people(A)
    honest = [add_up(party, keys, numbers, roots[party], HASH) for party in (0, 1)]
    assert fits(honest)

    rotated = numbers.copy()
    rotated[7] += np.uint64(1)
    fewer = PointKeys(100, keys.corrections[:, 1:], keys.leaves[1:])
    changed = honest[liar].copy()
    changed[0, 5] = field.add(changed[0, 5], np.uint64(1))
    lies = [
        add_up(liar, keys, rotated, roots[liar], HASH),
        add_up(liar, fewer, numbers[1:], roots[liar, 1:], HASH),
        changed,
    ]
    for lie in lies:
        assert not fits([lie, honest[1 - liar]])
    # who knows α changes m alike
    changed[1, 5] = field.add(changed[1, 5], np.uint64(A))
    assert fits([changed, honest[1 - liar]])


@pytest.mark.parametrize("number", range(16))
def test_a_changed_number_of_a_leaf_of_pairs_fits_no_product(number):
    keys, roots, numbers = people(A)
    keys.leaves[:, number] = field.add(keys.leaves[:, number], np.uint64(1))
    assert not fits([add_up(party, keys, numbers, roots[party], HASH) for party in (0, 1)])


def test_both_parties_shares_are_elements_and_spread_over_the_field():
    """Sums of many people: no share is p or more, and some are in each sixteenth of F."""
    keys, roots = deal(64, np.arange(2000, dtype=np.uint64) % np.uint64(64), "spread", A)
    for party in (0, 1):
        share = add_up(party, keys, np.zeros(2000, np.uint64), roots[party], HASH)
        assert share.max() < field.P
        assert set((share.reshape(-1) >> np.uint64(60)).tolist()) == set(range(16))


# --- a key alone says nothing of its cell ---------------------------------------------------------


@pytest.mark.parametrize("alpha", [None, A])
@pytest.mark.parametrize("place", [0, 13])
def test_every_bit_of_a_key_is_balanced(place, alpha):
    """p is so near to 2^64 that this holds for elements of F as well."""
    keys, _ = deal(20, np.full(EDGES, place, np.uint64), f"balanced {place}", alpha)
    raw = keys.leaves.tobytes(), keys.corrections.tobytes()
    leaves, words = (np.frombuffer(each, dtype=np.uint8) for each in raw)
    leaves = np.unpackbits(leaves.reshape(EDGES, -1), axis=1)
    words = np.unpackbits(words.reshape(levels(20), EDGES, 16), axis=2)
    ones = np.concatenate([leaves.sum(axis=0), words.sum(axis=1).reshape(-1)]).astype(float)
    z = np.abs(ones - EDGES / 2) / np.sqrt(EDGES / 4)
    assert z.max() < stats.norm.isf(ALPHA / 2 / len(z)), f"bit {z.argmax()}, N = {EDGES}"


@pytest.mark.parametrize("alpha", [None, A])
@pytest.mark.parametrize("party", [0, 1])
def test_one_partys_view_has_the_same_law_for_two_cells(party, alpha):
    """Key, root, and own shares at both cells: their low bits, jointly."""
    first, second = (view(place, party, alpha) for place in (0, 13))
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


@pytest.mark.parametrize("party", [0, 1])
def test_one_partys_view_has_the_same_law_for_two_values_of_alpha(party):
    first, second = (view(13, party, alpha) for alpha in (1, 2))
    p = homogeneity(first, second)
    assert p > ALPHA, f"a view depends on alpha: p = {p:.1e}, N = {EDGES}, party {party}"


def view(place: int, party: int, alpha: int | None) -> np.ndarray:
    keys, roots = deal(20, np.full(EDGES, place, np.uint64), f"view {place} {party} {alpha}", alpha)
    return joint(keys, roots, party)


def joint(keys: PointKeys, roots: np.ndarray, party: int) -> np.ndarray:
    """8 bits that a party holds, as one category."""
    # of pairs: the second number of cells 0 and 13, in the leaf at 1 and 11
    shares = expand(party, keys, roots[party], HASH).reshape(EDGES, 20, -1)[:, :, -1]
    leaves = keys.leaves.reshape(EDGES, 8, -1)[:, :, -1]
    numbers = [leaves[:, 0], leaves[:, 5], roots[party, :, 0] >> np.uint64(3)]
    numbers += [keys.corrections[0, :, 0], keys.corrections[0, :, 0] >> np.uint64(2)]
    numbers += [shares[:, 0], shares[:, 13], keys.corrections[1, :, 0]]
    return sum((each & np.uint64(1)).astype(np.int64) << i for i, each in enumerate(numbers))
