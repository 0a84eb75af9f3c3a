"""Point functions: keys, their expansion, and sums of rotated vectors.

Paper: Boyle, Gilboa & Ishai 2016, section 3.2, algorithms Gen• and EvalAll. Two parties hold a key
each. It expands to D numbers, which are shares of 1 at cell r and of 0 elsewhere. `docs/people.md`
says what umpc does with it, `spec/point_functions.py` is the same in plain Python.

| in the paper | plain keys | authenticated keys |
|---|---|---|
| α | r | r |
| β, 𝔾 | 1, Z_{2^64} | (1, a), F × F |
| G(s) and CW^(i) | as in `tree.py` | the same |
| Convert(s) | four pads of a leaf, eight numbers | twelve pads, eight pairs |
| CW^(n+1) | eight numbers | eight pairs |

Here a is `alpha`, which the dealer alone knows and takes for all keys of a study. Then the sums h
and m over both parties have m = a·h. A party that changes its share of h must guess a to change
that of m alike.

A number of F takes 96 bits of the pads, as 2^96 = −1 modulo p: the residue of 96 uniform bits is at
a distance of 2^−96 from uniform. That of 64 bits would be at 2^−32.

The tree ends three levels early (section 3.2.3): a key of D cells takes D/4 AES blocks for its tree
and D/2 for its leaves, or 3·D/2 for those of pairs. With one cell pair in a leaf it would be D and
D/2, and the key 16 bytes shorter. Only leaves of the first D cells are expanded, so D need not be a
power of two.

The correction words and the leaf are alike for both parties. Roots come from seeds of their own.
Each key serves one number, once: two numbers under one r tell the difference of two values.
Reveals: nothing to either party, as a key alone is pseudorandom given r and a. Cost: 16 bytes a
level, and 64 or 128 for the leaf; no communication.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.crypto import field
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.prime_field import PRIME
from umpc.crypto.ring import Ring
from umpc.errors import EncodingError
from umpc.mpc.arrays import WordArray
from umpc.mpc.fss.tree import child, generate_path
from umpc.native import points as compiled
from umpc.native.points import LEAF_CELLS, leaf_count, levels

__all__ = ["LEAF_CELLS", "PointKeys", "add_up", "generate", "key_bytes", "levels"]

PADS = (2, 3, 4, 5)
"""The pads of a leaf, in the place of a left or right child: 0 or 1."""
PADS_OF_PAIRS = (*PADS, 6, 7, 10, 11, 12, 13, 14, 15)
"""Bit 3 turns one of the seed, which a correlation robust hash allows."""
_PLAIN = Ring(64)
_AT_ONCE = 1 << 16
"""Cells that numpy expands together."""
_LEAF, _ONE, _HALF = np.uint64(LEAF_CELLS), np.uint64(1), np.uint64(32)
_LOWER = np.uint64(2**32 - 1)
"""The lower half of a word, and 2^64 modulo p."""


def key_bytes(cells: int, authenticated: bool = False) -> int:
    """Bytes of one key on the wire."""
    return 16 * levels(cells) + 8 * LEAF_CELLS * (1 + authenticated)


@dataclass(frozen=True)
class PointKeys:
    """Keys of n people, common to both parties.

    cells: D. corrections: (levels, n, 2) uint64, the words CW^(i).
    leaves: (n, 8) uint64, or (n, 16) of authenticated keys: elements of F, two of a cell together.
    """

    cells: int
    corrections: WordArray
    leaves: WordArray

    def __repr__(self) -> str:
        return f"PointKeys(cells={self.cells}, people={len(self.leaves)}, <redacted>)"

    @property
    def width(self) -> int:
        """Numbers of a cell: 2 of authenticated keys, else 1."""
        return int(self.leaves.shape[1]) // LEAF_CELLS

    @property
    def ring(self) -> Ring:
        """The ring of the numbers."""
        return PRIME if self.width == 2 else _PLAIN

    def encode(self) -> bytes:
        """The bytes on the wire, little-endian: all corrections, then all leaves."""
        return self.corrections.astype("<u8").tobytes() + self.leaves.astype("<u8").tobytes()

    @classmethod
    def decode(
        cls, data: memoryview, cells: int, count: int, authenticated: bool = False
    ) -> PointKeys:
        """The inverse of encode.

        Raises: EncodingError on a wrong length, and for a word that is no element of F.
        """
        due = count * key_bytes(cells, authenticated)
        if len(data) != due:
            raise EncodingError(
                f"{count} point keys of {cells} cells take {due} bytes, and {len(data)} came"
            )
        split = 16 * levels(cells) * count
        corrections = np.frombuffer(data[:split], dtype="<u8").reshape(levels(cells), count, 2)
        leaves = np.frombuffer(data[split:], dtype="<u8").reshape(
            count, LEAF_CELLS * (1 + authenticated)
        )
        keys = cls(cells, corrections, leaves)
        keys.ring.checked(leaves)
        return keys


def generate(
    cells: int,
    places: WordArray,
    roots: WordArray,
    tree_hash: FixedKeyHash,
    alpha: int | None = None,
) -> PointKeys:
    """Gen•: the dealer's keys.

    Args:
        places: (n,) uint64, r of each key, below `cells`.
        roots: (2, n, 2) uint64, uniform.
        alpha: for authenticated keys, in [0, p).
    """
    if compiled.CHOSEN is None:
        return generate_in_numpy(cells, places, roots, tree_hash, alpha)
    # the kernel reads plain pointers to contiguous words
    given = np.ascontiguousarray(places), np.ascontiguousarray(roots)
    return PointKeys(cells, *compiled.generate(tree_hash.key, cells, *given, alpha=alpha))


def generate_in_numpy(
    cells: int,
    places: WordArray,
    roots: WordArray,
    tree_hash: FixedKeyHash,
    alpha: int | None = None,
) -> PointKeys:
    """`generate`, the reference of the compiled one."""
    # spec/point_functions.py, `generate`
    leaf = places // _LEAF
    bits = [leaf >> np.uint64(level) & _ONE for level in reversed(range(levels(cells)))]
    path = generate_path(bits, roots, tree_hash)
    beta = np.array([1] if alpha is None else [1, alpha], dtype=np.uint64)
    at_place = places[:, None] % _LEAF == np.arange(LEAF_CELLS, dtype=np.uint64)
    numbers = (at_place[..., None] * beta).reshape(len(places), LEAF_CELLS * len(beta))
    keys = PointKeys(cells, path.corrections, numbers)
    # CW^(n+1) = (−1)^(t_1)·(β − Convert(s_0) + Convert(s_1)), with β at r
    first, second = (_converted(blocks, keys, tree_hash) for blocks in path.blocks)
    ring, control = keys.ring, path.controls[1][:, None]
    numbers[:] = ring.plus(ring.minus(numbers, first), second)
    # x or −x, without a choice that depends on a secret
    sign = ring.minus(np.ones_like(control), control + control)
    numbers[:] = ring.times(numbers, sign)
    return keys


def add_up(
    party: int,
    keys: PointKeys,
    numbers: WordArray,
    roots: WordArray,
    tree_hash: FixedKeyHash,
    row: int | None = None,
) -> WordArray:
    """A party's share of the histogram: its vectors, each rotated by its number, added up.

    The D cells are D1 rows of D2 cells, and a number is u·D2 + v. A person's cell in row a and
    column b counts for row a + u modulo D1 and column b + v modulo D2. With one row, cell c counts
    for cell c + number modulo D. No vector is stored for a person where the compiled kernel runs.

    Args:
        party: 0 or 1.
        numbers: (n,) uint64, x − r, known to both parties, in both dimensions.
        roots: (n, 2) uint64, this party's.
        row: D2, a divisor of D; default: D.

    Returns: (cells,) uint64. Authenticated keys give (2, cells), elements of F: shares of h, a·h.

    Raises: EncodingError for a number that is no cell.
    """
    if len(numbers) and int(numbers.max()) >= keys.cells:
        raise EncodingError(f"a person's number is not below {keys.cells}, the number of cells")
    if compiled.CHOSEN is None:
        return add_up_in_numpy(party, keys, numbers, roots, tree_hash, row)
    corrections, leaves, own_numbers, own_roots = map(
        np.ascontiguousarray, (keys.corrections, keys.leaves, numbers, roots)
    )
    given = corrections, leaves, own_numbers, own_roots
    return compiled.add_up(tree_hash.key, party, keys.cells, *given, row=row)


def add_up_in_numpy(
    party: int,
    keys: PointKeys,
    numbers: WordArray,
    roots: WordArray,
    tree_hash: FixedKeyHash,
    row: int | None = None,
) -> WordArray:
    """`add_up`, the reference of the compiled one."""
    # spec/point_functions.py, `add_up`
    row = row or keys.cells
    total = np.zeros((keys.cells // row, row, keys.width), dtype=np.uint64)
    batch = max(1, _AT_ONCE // keys.cells)
    for start in range(0, len(numbers), batch):
        some = slice(start, start + batch)
        part = PointKeys(keys.cells, keys.corrections[:, some], keys.leaves[some])
        vectors = expand(party, part, roots[some], tree_hash).reshape(-1, *total.shape)
        for each, number in zip(vectors, numbers[some].tolist(), strict=True):
            total = keys.ring.plus(total, np.roll(each, divmod(number, row), axis=(0, 1)))
    flat = total.reshape(keys.cells, keys.width)
    return flat.T if keys.width == 2 else flat[:, 0]


def expand(party: int, keys: PointKeys, roots: WordArray, tree_hash: FixedKeyHash) -> WordArray:
    """EvalAll: a party's share of each of the first D cells, (n, cells) uint64.

    Authenticated keys give (n, 2·cells), the two numbers of a cell together.
    """
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
    ring, corrected = keys.ring, control[..., None] * keys.leaves[:, None]
    values = ring.plus(_converted(blocks, keys, tree_hash), corrected)
    values = values.reshape(people, -1)[:, : keys.cells * keys.width]
    return ring.minus(np.zeros_like(values), values) if party else values


def _converted(blocks: WordArray, keys: PointKeys, tree_hash: FixedKeyHash) -> WordArray:
    """Convert: the numbers of each leaf, (…, 2) → (…, 8) or (…, 16)."""
    # spec/point_functions.py, `convert`
    pads = PADS_OF_PAIRS if keys.width == 2 else PADS
    words = np.concatenate([child(blocks, which, tree_hash) for which in pads], axis=-1)
    if keys.width == 1:
        return words
    low, upper = words[..., :16], words[..., 16:]
    # x = low + 2^64 high, and 2^64 = 2^32 − 1; any word is a good left summand
    high = np.concatenate([upper & _LOWER, upper >> _HALF], axis=-1)
    return field.add(low, high * _LOWER)
