"""Point functions: two short keys that expand to shares of a vector with one 1, modulo 2^64.

Boyle, Gilboa & Ishai 2016, section 3.2: a distributed point function, with α = r and β = 1. Each
key alone is pseudorandom whatever r is, and the two vectors add up to 1 at r and 0 elsewhere. The
tree is that of `dcf.py`; its value bits are there, and nobody reads them.

The tree ends early (section 3.2.3). A leaf has four pads, which hold CELLS_OF_LEAF numbers. So a
key of D cells takes 0.75·D AES blocks to expand. Only leaves that hold one of the first D cells are
expanded, so D need not be a power of two.
"""

from spec.dcf import child, path
from spec.prg import cut
from spec.refused import require

CELLS_OF_LEAF = 8
PADS = (2, 3, 4, 5)
"""The four pads of a leaf, in the place of a left or right child, 0 or 1."""
MODULUS = 1 << 64
Key = tuple[list[int], list[int]]
"""The correction words, one block a level, and the leaf's eight numbers, alike for both parties."""


def leaves(cells: int) -> int:
    """The leaves that hold the first D cells."""
    return -(-cells // CELLS_OF_LEAF)


def levels(cells: int) -> int:
    """The levels of the tree above its leaves."""
    return (leaves(cells) - 1).bit_length()


def pads(hash_key: bytes, block: int) -> list[int]:
    """Convert: the eight numbers of a leaf's block, from four pads of two numbers each."""
    blocks = [child(hash_key, block, which) for which in PADS]
    return [half for each in blocks for half in (each % MODULUS, each >> 64)]


def generate(cells: int, place: int, roots: list[int], hash_key: bytes) -> Key:
    """Gen•. Args: place: r, in [0, cells). roots: a uniform block of either party."""
    leaf = place // CELLS_OF_LEAF
    bits = [leaf >> level & 1 for level in reversed(range(levels(cells)))]
    corrections, blocks, control, _ = path(bits, roots, hash_key)
    # CW^(n+1) = (−1)^(t_1)·(β − Convert(s_0) + Convert(s_1)), with β = 1 at r
    rows = zip(*(pads(hash_key, block) for block in blocks), strict=True)
    sign = 1 - 2 * control[1]
    numbers = [
        sign * ((number == place % CELLS_OF_LEAF) - first + second) % MODULUS
        for number, (first, second) in enumerate(rows)
    ]
    return corrections, numbers


def expand(party: int, cells: int, key: Key, root: int, hash_key: bytes) -> list[int]:
    """EvalAll: a party's share of each of the first D cells."""
    corrections, leaf = key
    # Eval•, beginning: s = the root, t = b
    nodes = [(root, party)]
    for height, word in zip(reversed(range(levels(cells))), corrections, strict=True):
        # both children, corrected if the control bit is set
        below = [
            child(hash_key, block, which) ^ control * word
            for block, control in nodes
            for which in (0, 1)
        ]
        nodes = [(block, block >> 2 * (place % 2) & 1) for place, block in enumerate(below)]
        # the nodes above the first D cells are enough
        nodes = nodes[: -(-leaves(cells) >> height)]
    # the share is (−1)^b·(Convert(s) + t·CW^(n+1))
    sign = 1 - 2 * party
    values = [
        sign * (pad + control * number) % MODULUS
        for block, control in nodes
        for pad, number in zip(pads(hash_key, block), leaf, strict=True)
    ]
    return values[:cells]


def rotate(values: list[int], number: int) -> list[int]:
    """The values with that of cell c at c + number, modulo D: 1 at r becomes 1 at r + number."""
    split = len(values) - number
    return values[split:] + values[:split]


def add_up(
    party: int,
    cells: int,
    keys: list[Key],
    numbers: list[int],
    roots: list[int],
    hash_key: bytes,
) -> list[int]:
    """A party's share of the histogram: the sum of all its rotated vectors, modulo 2^64."""
    total = [0] * cells
    for key, number, root in zip(keys, numbers, roots, strict=True):
        # another number would rotate past the end
        require(0 <= number < cells, "a number is a cell")
        rotated = rotate(expand(party, cells, key, root, hash_key), number)
        total = [(a + b) % MODULUS for a, b in zip(total, rotated, strict=True)]
    return total


def encode(keys: list[Key]) -> bytes:
    """Several keys on the wire: level by level all corrections, then all leaves."""
    corrections = zip(*(words for words, _ in keys), strict=True)
    blocks = b"".join(word.to_bytes(16, "little") for words in corrections for word in words)
    return blocks + b"".join(number.to_bytes(8, "little") for _, leaf in keys for number in leaf)


def decode(data: bytes, cells: int, count: int) -> list[Key]:
    """The inverse of `encode`."""
    depth = levels(cells)
    require(len(data) == count * (16 * depth + 8 * CELLS_OF_LEAF), "length of point keys")
    middle = 16 * depth * count
    blocks = [int.from_bytes(part, "little") for part in cut(data[:middle], 16)]
    numbers = [int.from_bytes(part, "little") for part in cut(data[middle:], 8)]
    return [(blocks[g::count], leaf) for g, leaf in enumerate(cut(numbers, CELLS_OF_LEAF))]
