"""The comparison gate: is a masked difference below zero, is it zero? By one key for two parties.

Boyle et al. 2021, section 3, algorithms Gen< and Eval<: a distributed comparison function. Two
parties know d̂ = d + r mod 2^w, and each holds a key. Without a message each computes XOR shares of

    [d < 0] = msb(d̂) ⊕ msb(r) ⊕ [d̂_low < r_low]      low: the w − 1 low bits
    [d = 0] = [d̂ = r]                                  for d in [−2^(w−1), 2^(w−1))

msb(r) is left to the mask under which the bit is opened. In the paper's terms α = r_low, β = 1 and
the group is Z_2. A block is 128 bits: a seed in the upper 125, and three bits below.

    bit 0: the control bit t^L, if the block is a left child
    bit 1: the value bit v, which is added into [d̂_low < r_low]
    bit 2: the control bit t^R, if the block is a right child

The tree ends LEAF_BITS early (Boyle, Gilboa & Ishai 2016, section 3.2.3). The leaf holds the truth
tables of the bits that are left.
"""

from spec.prg import cut, tree_hash
from spec.refused import require

LEAF_BITS = 5
Key = tuple[list[int], bytes]
"""The correction words, one block a level, and the leaf's 12 bytes: both parties have the same."""


def levels(width: int) -> int:
    """The levels of a tree for a w-bit difference."""
    return max(0, width - 1 - LEAF_BITS)


def child(hash_key: bytes, block: int, which: int) -> int:
    """G(s): the left child (0), the right one (1), or a pad of a leaf (others)."""
    return tree_hash(hash_key, block >> 3 << 3 ^ which)


def places(width: int, value: int) -> tuple[int, int]:
    """Where a value is in the leaf's tables of [j < r_low] and of [j = r], which has the msb."""
    rest = value & (1 << min(LEAF_BITS, width - 1)) - 1
    return rest, (value >> width - 1) << LEAF_BITS | rest


def path(
    bits: list[int], roots: list[int], hash_key: bytes
) -> tuple[list[int], list[int], list[int], int]:
    """Gen< down to a leaf: also the tree of `point_functions.py`.

    Args: bits: those of α that choose a child, the highest first. roots: a uniform block of either
    party. Returns: the correction words; both parties' blocks and control bits at α's leaf; V_α.
    """
    # Gen<, beginning: the roots' seeds are random, t_0 = 0, t_1 = 1, and V_α = 0
    blocks, control, value = list(roots), [0, 1], 0
    corrections = []
    for bit in bits:
        keep, lose = bit, 1 - bit
        # expand both parties' seeds into two children each
        children = [[child(hash_key, block, which) for which in (0, 1)] for block in blocks]
        difference = [children[0][which] ^ children[1][which] for which in (0, 1)]
        # the children off the path get equal seeds
        word = difference[lose] >> 3 << 3
        # off the path [j < r_low] is 1 to the left of it, and 0 to the right
        value_word = (difference[lose] >> 1 & 1) ^ value ^ (lose == 0)
        word |= value_word << 1
        # exactly one party's control bit stays set on the path, and none off it
        word |= (difference[0] & 1) ^ bit ^ 1
        word |= ((difference[1] >> 2 & 1) ^ bit) << 2
        corrections.append(word)
        # V_α of the path so far
        value ^= (difference[keep] >> 1 & 1) ^ value_word
        # both go to the kept child, corrected where the control bit is set
        for party in (0, 1):
            blocks[party] = children[party][keep] ^ control[party] * word
            control[party] = blocks[party] >> 2 * keep & 1
    return corrections, blocks, control, value


def generate(width: int, mask: int, roots: list[int], hash_key: bytes) -> Key:
    """Gen<. Args: mask: r mod 2^width. roots: a uniform block of either party."""
    bits = [mask >> place & 1 for place in range(width - 2, LEAF_BITS - 1, -1)]
    corrections, blocks, _, value = path(bits, roots, hash_key)
    # the leaf's tables, under the pads of both parties
    pads = child(hash_key, blocks[0], 2) ^ child(hash_key, blocks[1], 2)
    rest, place = places(width, mask)
    equal = pads & (1 << 64) - 1 ^ 1 << place
    less = pads >> 64 & (1 << 32) - 1 ^ (1 << rest) - 1 ^ -value & (1 << 32) - 1
    return corrections, equal.to_bytes(8, "little") + less.to_bytes(4, "little")


def evaluate(
    party: int, width: int, key: Key, masked: int, root: int, hash_key: bytes
) -> tuple[int, int]:
    """Eval<: a party's shares of [d < 0], but for msb(r), and of [d = 0]."""
    corrections, leaf = key
    # Eval<, beginning: s = the root, t = b, V = 0
    block, control, value = root, party, 0
    for place, word in zip(range(width - 2, LEAF_BITS - 1, -1), corrections, strict=True):
        bit = masked >> place & 1
        # one child, corrected if the control bit is set
        block = child(hash_key, block, bit) ^ control * word
        value ^= block >> 1 & 1
        control = block >> 2 * bit & 1
    # the truth tables, corrected in the same way
    pad = child(hash_key, block, 2)
    equal = pad & (1 << 64) - 1 ^ control * int.from_bytes(leaf[:8], "little")
    less = pad >> 64 ^ control * int.from_bytes(leaf[8:], "little")
    rest, place = places(width, masked)
    top = masked >> width - 1 if party == 0 else 0
    return less >> rest & 1 ^ value ^ top, equal >> place & 1


def encode(keys: list[Key]) -> bytes:
    """The keys of several gates on the wire: level by level all corrections, then all leaves."""
    corrections = zip(*(words for words, _ in keys), strict=True)
    blocks = b"".join(word.to_bytes(16, "little") for words in corrections for word in words)
    return blocks + b"".join(leaf for _, leaf in keys)


def decode(data: bytes, width: int, count: int) -> list[Key]:
    """The inverse of `encode`."""
    depth = levels(width)
    require(len(data) == count * (16 * depth + 12), "length of keys")
    middle = 16 * depth * count
    blocks = [int.from_bytes(part, "little") for part in cut(data[:middle], 16)]
    return [(blocks[g::count], leaf) for g, leaf in enumerate(cut(data[middle:], 12))]
