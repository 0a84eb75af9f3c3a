"""Hash trees: every value's path, the tree of RFC 9162, and what a liar may try."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpc.crypto.hash_tree import HASH_BYTES, HashTree, is_under, path_length
from umpc.errors import LocalProtocolError


def by_the_standard(values: list[bytes]) -> bytes:
    """The root as RFC 9162 defines it: a split at the largest power of two below the number."""
    if len(values) == 1:
        return sha256(b"\0" + values[0]).digest()
    split = 1
    while 2 * split < len(values):
        split *= 2
    left, right = by_the_standard(values[:split]), by_the_standard(values[split:])
    return sha256(b"\1" + left + right).digest()


def values_of(count: int) -> list[bytes]:
    return [number.to_bytes(2, "big") for number in range(count)]


@pytest.mark.parametrize("count", range(1, 34))
def test_every_path_of_every_small_tree(count: int) -> None:
    values = values_of(count)
    tree = HashTree(values)
    assert tree.root == by_the_standard(values)
    for place, value in enumerate(values):
        path = tree.path(place)
        assert len(path) == HASH_BYTES * path_length(place, count)
        assert is_under(tree.root, value, place, count, path)
        for other in range(count + 1):
            if other != place:
                assert not is_under(tree.root, value, other, count, path)


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=80), st.data())
def test_no_other_value_or_path_is_taken(values: list[bytes], data: st.DataObject) -> None:
    tree = HashTree(values)
    place = data.draw(st.integers(0, len(values) - 1))
    path, count = tree.path(place), len(values)
    assert is_under(tree.root, values[place], place, count, path)
    other = data.draw(st.binary(max_size=70).filter(lambda value: value != values[place]))
    assert not is_under(tree.root, other, place, count, path)
    assert not is_under(tree.root, values[place], place, count, path + bytes(HASH_BYTES))
    if path:
        at = data.draw(st.integers(0, len(path) - 1))
        changed = path[:at] + bytes((path[at] ^ 1,)) + path[at + 1 :]
        assert not is_under(tree.root, values[place], place, count, changed)
        assert not is_under(tree.root, values[place], place, count, path[:-1])


def test_a_node_is_not_shown_as_a_value() -> None:
    tree = HashTree(values_of(4))
    left = sha256(b"\0" + values_of(2)[0]).digest() + sha256(b"\0" + values_of(2)[1]).digest()
    right = tree.path(0)[HASH_BYTES:]
    assert not is_under(tree.root, left, 0, 2, right)
    assert not is_under(tree.root, b"\1" + left, 0, 2, right)


def test_a_place_outside_is_refused() -> None:
    tree = HashTree(values_of(4))
    for place in (-1, 4, 5):
        assert not is_under(tree.root, values_of(4)[0], place, 4, tree.path(0))


def test_a_tree_of_nothing_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="at least one value"):
        HashTree([])
