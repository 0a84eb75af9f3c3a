"""Point functions of value 1: keys, their expansion, and sums of rotated vectors, modulo 2^64.

Paper: Boyle, Gilboa & Ishai 2016, section 3.2, algorithms Gen• and EvalAll. Two parties hold a key
each. It expands to D numbers, which are shares of 1 at cell r and of 0 elsewhere. `docs/people.md`
says what umpc does with it, `spec/point_functions.py` is the same in plain Python.

| in the paper | here |
|---|---|
| α, β, 𝔾 | r, 1, Z_{2^64} |
| G(s) and CW^(i) | as in `tree.py` |
| Convert(s) | four pads of a leaf, eight numbers |
| CW^(n+1) | eight numbers |

The tree ends three levels early (section 3.2.3): a key of D cells takes D/4 AES blocks for its tree
and D/2 for its leaves. With one cell pair in a leaf it would be D and D/2, and the key 16 bytes
shorter. Only leaves of the first D cells are expanded, so D need not be a power of two.

The correction words and the leaf are alike for both parties. Roots come from seeds of their own.
Each key serves one number, once: two numbers under one r tell the difference of two values.
Reveals: nothing to either party, as a key alone is pseudorandom given r. Cost: 16 bytes a level and
64 for the leaf; no communication.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.errors import EncodingError
from umpc.mpc.arrays import WordArray
from umpc.mpc.fss.tree import child, generate_path
from umpc.native import points as compiled
from umpc.native.points import LEAF_CELLS, leaf_count, levels

__all__ = ["LEAF_CELLS", "PointKeys", "add_up", "generate", "key_bytes", "levels"]

PADS = (2, 3, 4, 5)
"""The pads of a leaf, in the place of a left or right child: 0 or 1."""
_AT_ONCE = 1 << 16
"""Cells that numpy expands together."""
_LEAF, _ONE = np.uint64(LEAF_CELLS), np.uint64(1)


def key_bytes(cells: int) -> int:
    """Bytes of one key on the wire."""
    return 16 * levels(cells) + 8 * LEAF_CELLS


@dataclass(frozen=True)
class PointKeys:
    """Keys of n people, common to both parties.

    cells: D. corrections: (levels, n, 2) uint64, the words CW^(i). leaves: (n, 8) uint64.
    """

    cells: int
    corrections: WordArray
    leaves: WordArray

    def __repr__(self) -> str:
        return f"PointKeys(cells={self.cells}, people={len(self.leaves)}, <redacted>)"

    def encode(self) -> bytes:
        """The bytes on the wire, little-endian: all corrections, then all leaves."""
        return self.corrections.astype("<u8").tobytes() + self.leaves.astype("<u8").tobytes()

    @classmethod
    def decode(cls, data: memoryview, cells: int, count: int) -> PointKeys:
        """The inverse of encode. Raises: EncodingError on a wrong length."""
        due = count * key_bytes(cells)
        if len(data) != due:
            raise EncodingError(
                f"{count} point keys of {cells} cells take {due} bytes, and {len(data)} came"
            )
        split = 16 * levels(cells) * count
        corrections = np.frombuffer(data[:split], dtype="<u8").reshape(levels(cells), count, 2)
        leaves = np.frombuffer(data[split:], dtype="<u8").reshape(count, LEAF_CELLS)
        return cls(cells, corrections, leaves)


def generate(cells: int, places: WordArray, roots: WordArray, tree_hash: FixedKeyHash) -> PointKeys:
    """Gen•: the dealer's keys.

    Args: places: (n,) uint64, r of each key, below `cells`. roots: (2, n, 2) uint64, uniform.
    """
    if compiled.CHOSEN is None:
        return generate_in_numpy(cells, places, roots, tree_hash)
    # the kernel reads plain pointers to contiguous words
    given = np.ascontiguousarray(places), np.ascontiguousarray(roots)
    return PointKeys(cells, *compiled.generate(tree_hash.key, cells, *given))


def generate_in_numpy(
    cells: int, places: WordArray, roots: WordArray, tree_hash: FixedKeyHash
) -> PointKeys:
    """`generate`, the reference of the compiled one."""
    # spec/point_functions.py, `generate`
    leaf = places // _LEAF
    bits = [leaf >> np.uint64(level) & _ONE for level in reversed(range(levels(cells)))]
    path = generate_path(bits, roots, tree_hash)
    # CW^(n+1) = (−1)^(t_1)·(β − Convert(s_0) + Convert(s_1)), with β = 1 at r
    first, second = (_pads(blocks, tree_hash) for blocks in path.blocks)
    one = places[:, None] % _LEAF == np.arange(LEAF_CELLS, dtype=np.uint64)
    numbers = one.astype(np.uint64) - first + second
    # x or −x, without a choice that depends on a secret
    numbers *= _ONE - np.uint64(2) * path.controls[1][:, None]
    return PointKeys(cells, path.corrections, numbers)


def add_up(
    party: int, keys: PointKeys, numbers: WordArray, roots: WordArray, tree_hash: FixedKeyHash
) -> WordArray:
    """A party's share of the histogram: its vectors, each rotated by its number, added up.

    Cell c of a person counts for cell c + number modulo D. No vector of D numbers is stored for a
    person where the compiled kernel runs.

    Args:
        party: 0 or 1.
        numbers: (n,) uint64, x − r mod D, known to both parties.
        roots: (n, 2) uint64, this party's.

    Returns: (cells,) uint64.

    Raises: EncodingError for a number that is no cell.
    """
    if len(numbers) and int(numbers.max()) >= keys.cells:
        raise EncodingError(f"a person's number is not below {keys.cells}, the number of cells")
    if compiled.CHOSEN is None:
        return add_up_in_numpy(party, keys, numbers, roots, tree_hash)
    corrections, leaves, own_numbers, own_roots = map(
        np.ascontiguousarray, (keys.corrections, keys.leaves, numbers, roots)
    )
    given = corrections, leaves, own_numbers, own_roots
    return compiled.add_up(tree_hash.key, party, keys.cells, *given)


def add_up_in_numpy(
    party: int, keys: PointKeys, numbers: WordArray, roots: WordArray, tree_hash: FixedKeyHash
) -> WordArray:
    """`add_up`, the reference of the compiled one."""
    # spec/point_functions.py, `add_up`
    total = np.zeros(keys.cells, dtype=np.uint64)
    batch = max(1, _AT_ONCE // keys.cells)
    for start in range(0, len(numbers), batch):
        some = slice(start, start + batch)
        part = PointKeys(keys.cells, keys.corrections[:, some], keys.leaves[some])
        rows = expand(party, part, roots[some], tree_hash)
        for row, number in zip(rows, numbers[some].tolist(), strict=True):
            total[number:] += row[: keys.cells - number]
            total[:number] += row[keys.cells - number :]
    return total


def expand(party: int, keys: PointKeys, roots: WordArray, tree_hash: FixedKeyHash) -> WordArray:
    """EvalAll: a party's share of each of the first D cells, (n, cells) uint64."""
    # spec/point_functions.py, `expand`
    leaves, people = leaf_count(keys.cells), len(keys.leaves)
    # Eval•, beginning: s = the root, t = b
    blocks = roots[:, None]
    control = np.full((people, 1), party, dtype=np.uint64)
    for height, word in zip(reversed(range(levels(keys.cells))), keys.corrections, strict=True):
        # both children side by side, corrected if the control bit is set
        both = [
            child(blocks, which, tree_hash) ^ control[..., None] * word[:, None] for which in (0, 1)
        ]
        controls = [each[..., 0] >> np.uint64(2 * which) & _ONE for which, each in enumerate(both)]
        # the nodes above the first D cells are enough
        due = -(-leaves >> height)
        blocks = np.stack(both, axis=2).reshape(people, -1, 2)[:, :due]
        control = np.stack(controls, axis=2).reshape(people, -1)[:, :due]
    # the share is (−1)^b·(Convert(s) + t·CW^(n+1))
    values = _pads(blocks, tree_hash) + control[..., None] * keys.leaves[:, None]
    values = values.reshape(people, -1)[:, : keys.cells]
    return np.negative(values) if party else values


def _pads(blocks: WordArray, tree_hash: FixedKeyHash) -> WordArray:
    """Convert: the eight numbers of each leaf, (…, 2) → (…, 8)."""
    return np.concatenate([child(blocks, which, tree_hash) for which in PADS], axis=-1)
