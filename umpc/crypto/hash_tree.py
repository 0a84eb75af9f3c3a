"""Hash trees: many values as one root, and a short path that shows one of them.

The tree is that of Certificate Transparency (RFC 9162, section 2.1). A leaf is SHA-256(0 ‖ value),
a node SHA-256(1 ‖ left ‖ right). On each level neighbours are joined in pairs, and a last one
without a neighbour moves up as it is. Leaf and node differ in their first byte, so no node can be
shown as a value. Number and place of the values are known to whoever checks a path, so nobody can
show a value of one place in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from umpc.errors import LocalProtocolError

HASH_BYTES = 32


def _leaf(value: bytes) -> bytes:
    return sha256(b"\0" + value).digest()


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


class HashTree:
    """The tree over some values, at least one. Raises: LocalProtocolError for none."""

    def __init__(self, values: Sequence[bytes]):
        if not values:
            raise LocalProtocolError("a hash tree has at least one value")
        level = [_leaf(value) for value in values]
        self._levels = [level]
        while len(level) > 1:
            pairs = range(0, len(level) - 1, 2)
            above = [_joined(level[place], level[place + 1]) for place in pairs]
            level = above + level[2 * len(above) :]
            self._levels.append(level)

    @property
    def root(self) -> bytes:
        """The root, 32 bytes."""
        return self._levels[-1][0]

    def path(self, place: int) -> bytes:
        """The hashes that lead from a value to the root, from below, 32 bytes each."""
        found = []
        for level in self._levels[:-1]:
            if place ^ 1 < len(level):
                found.append(level[place ^ 1])
            place >>= 1
        return b"".join(found)


def path_length(place: int, count: int) -> int:
    """How many hashes the path of a value among so many has."""
    length = 0
    while count > 1:
        length += place ^ 1 < count
        place, count = place >> 1, (count + 1) >> 1
    return length


def is_under(root: bytes, value: bytes, place: int, count: int, path: bytes) -> bool:
    """Whether a path shows that the value has this place among `count` values under a root."""
    if not 0 <= place < count or len(path) != HASH_BYTES * path_length(place, count):
        return False
    node, start = _leaf(value), 0
    while count > 1:
        if place ^ 1 < count:
            other = path[start : start + HASH_BYTES]
            node = _joined(other, node) if place & 1 else _joined(node, other)
            start += HASH_BYTES
        place, count = place >> 1, (count + 1) >> 1
    return node == root
