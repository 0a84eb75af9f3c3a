"""Point functions: two short keys that expand to shares of a vector that is 0 but for one cell.

Boyle, Gilboa & Ishai 2016, section 3.2: a distributed point function, with α = r. Each key alone is
pseudorandom whatever r is. Two kinds of keys have one tree, that of `dcf.py`; its value bits are
there, and nobody reads them.

    plain key           β = 1 modulo 2^64
    authenticated key   β = (1, a) in F (`field.py`), two numbers a cell. The dealer keeps a, alike
                        for all keys: sums h of the ones and m of the others have m = a·h

The tree ends early (section 3.2.3). A leaf has eight cells: four pads hold their numbers, or twelve
the pairs. So a key of D cells takes 0.75·D or 1.75·D AES blocks to expand. Only leaves that hold
one of the first D cells are expanded, so D need not be a power of two.

A number of F takes 96 bits of the pads. 2^96 = −1 modulo p, so 2^96 + 1 is a multiple of p, and the
residue of 96 uniform bits is at a distance of 2^−96 from uniform. With 64 bits it would be 2^−32.
"""

from spec import field
from spec.dcf import child, path
from spec.prg import cut
from spec.refused import require

CELLS_OF_LEAF = 8
PADS = (2, 3, 4, 5)
PADS_OF_PAIRS = (2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15)
"""The pads of a leaf, in the place of a left or right child, 0 or 1. Bit 3 turns one of the seed:
correlation robustness of the hash allows it."""
MODULUS = 1 << 64
Key = tuple[list[int], list[int]]
"""The correction words, one block a level, and the leaf's eight or sixteen numbers, alike for both
parties. Two numbers of a cell stand together."""


def leaves(cells: int) -> int:
    """The leaves that hold the first D cells."""
    return -(-cells // CELLS_OF_LEAF)


def levels(cells: int) -> int:
    """The levels of the tree above its leaves."""
    return (leaves(cells) - 1).bit_length()


def modulus_of(leaf: list[int]) -> int:
    """The modulus of a kind of keys."""
    return MODULUS if len(leaf) == CELLS_OF_LEAF else field.P


def convert(hash_key: bytes, block: int, modulus: int) -> list[int]:
    """Convert: the numbers of a leaf's block."""
    labels = PADS if modulus == MODULUS else PADS_OF_PAIRS
    blocks = [child(hash_key, block, which) for which in labels]
    words = [half for each in blocks for half in (each % MODULUS, each >> 64)]
    if modulus == MODULUS:
        return words
    # a word for each number, and for numbers i and i + 8 the lower and upper half of one
    upper = [words[16 + i % 8] >> 32 * (i // 8) & (1 << 32) - 1 for i in range(16)]
    return [(low + (high << 64)) % modulus for low, high in zip(words, upper, strict=False)]


def generate(
    cells: int, place: int, roots: list[int], hash_key: bytes, alpha: int | None = None
) -> Key:
    """Gen•. Args: place: r, in [0, cells). roots: a uniform block of either party. alpha: a, for an
    authenticated key."""
    leaf = place // CELLS_OF_LEAF
    bits = [leaf >> level & 1 for level in reversed(range(levels(cells)))]
    corrections, blocks, control, _ = path(bits, roots, hash_key)
    beta = [1] if alpha is None else [1, alpha]
    due = [
        value * (cell == place % CELLS_OF_LEAF) for cell in range(CELLS_OF_LEAF) for value in beta
    ]
    modulus = modulus_of(due)
    # CW^(n+1) = (−1)^(t_1)·(β − Convert(s_0) + Convert(s_1)), with β at r
    rows = zip(due, *(convert(hash_key, block, modulus) for block in blocks), strict=True)
    sign = 1 - 2 * control[1]
    return corrections, [sign * (value - first + second) % modulus for value, first, second in rows]


def expand(party: int, cells: int, key: Key, root: int, hash_key: bytes) -> list[int]:
    """EvalAll: a party's share of each of the first D cells, one number a cell or two."""
    corrections, leaf = key
    modulus = modulus_of(leaf)
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
        sign * (pad + control * number) % modulus
        for block, control in nodes
        for pad, number in zip(convert(hash_key, block, modulus), leaf, strict=True)
    ]
    return values[: cells * len(leaf) // CELLS_OF_LEAF]


def rotate(values: list[int], number: int, row: int) -> list[int]:
    """D1 rows of D2 values, with that of (a, b) at (a + u mod D1, b + v mod D2), where the number
    is u·D2 + v. With one row, 1 at r becomes 1 at r + number modulo D."""
    rows = [values[at : at + row] for at in range(0, len(values), row)]
    u, v = len(rows) - number // row, row - number % row
    return [value for each in rows[u:] + rows[:u] for value in each[v:] + each[:v]]


def add_up(
    party: int,
    cells: int,
    keys: list[Key],
    numbers: list[int],
    roots: list[int],
    hash_key: bytes,
    row: int | None = None,
) -> list[int]:
    """A party's share of the histogram: the sum of all its rotated vectors.

    Authenticated keys give shares of h and of a·h, cell by cell. row: D2; default: D, one row.
    """
    width = len(keys[0][1]) // CELLS_OF_LEAF if keys else 1
    total = [0] * cells * width
    for key, number, root in zip(keys, numbers, roots, strict=True):
        # another number would rotate past the end
        require(0 <= number < cells, "a number is a cell")
        values = expand(party, cells, key, root, hash_key)
        rotated = rotate(values, number * width, width * (row or cells))
        modulus = modulus_of(key[1])
        total = [(a + b) % modulus for a, b in zip(total, rotated, strict=True)]
    return total


def encode(keys: list[Key]) -> bytes:
    """Several keys on the wire: level by level all corrections, then all leaves."""
    corrections = zip(*(words for words, _ in keys), strict=True)
    blocks = b"".join(word.to_bytes(16, "little") for words in corrections for word in words)
    return blocks + b"".join(number.to_bytes(8, "little") for _, leaf in keys for number in leaf)


def decode(data: bytes, cells: int, count: int, authenticated: bool = False) -> list[Key]:
    """The inverse of `encode`."""
    depth, size = levels(cells), CELLS_OF_LEAF * (1 + authenticated)
    require(len(data) == count * (16 * depth + 8 * size), "length of point keys")
    middle = 16 * depth * count
    blocks = [int.from_bytes(part, "little") for part in cut(data[:middle], 16)]
    numbers = [int.from_bytes(part, "little") for part in cut(data[middle:], 8)]
    # one encoding for each element
    modulus = field.P if authenticated else MODULUS
    require(all(number < modulus for number in numbers), "elements are below p")
    return [(blocks[g::count], leaf) for g, leaf in enumerate(cut(numbers, size))]
