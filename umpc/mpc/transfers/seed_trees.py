"""The trees of seeds of a channel's digits, and the proof that a digit's tree is one tree.

Papers: Goldreich, Goldwasser & Micali 1986 (trees); Roy 2022, SoftSpokenOT (eprint 2022/192),
section 5: one party has all leaves, the other all but one, whose number is its digit.
It holds the first party's base seeds of the other bits, and gets each level's sums under them.

A first party that lies sends sums that fit only some digits. Whoever has another digit computes
other leaves than the liar expects, and the liar would see by the next message which. The proof ends
that (Boyle et al. 2019, eprint 2019/1159; Roy 2022, its malicious variant):

    each leaf gives 64 further bytes s_x;  sent: T = ⊕ s_x for each digit, and H of all s_x
    the other party computes all s_x but one, that one from T, and compares H

If H fits, then all s_x are those of the liar's own trees, for a collision-resistant H. So the
leaves do not depend on the digits. A lie passes only for digits that the liar guessed. T tells
nothing: it is masked by the missing s_x, which stands in H alone, a random oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_256

from umpc.crypto.prg import SEED_BYTES, digest
from umpc.mpc.transfers.message_shapes import PROOF_OF_LEAF


def tree(pairs: Sequence[tuple[bytes, bytes]]) -> tuple[list[bytes], bytes]:
    """All leaves of one digit, lowest bit first, and each lower level's two masked sums."""
    nodes = list(pairs[0])
    sums = b""
    for pair in pairs[1:]:
        children = _children(nodes)
        sums += b"".join(_xor(key, *side) for key, side in zip(pair, children, strict=True))
        nodes = children[0] + children[1]
    return nodes, sums


def punctured(keys: Sequence[bytes], bits: Sequence[int], sums: bytes) -> list[bytes]:
    """The leaves without number Δ, renumbered: at place y − 1 the leaf y ⊕ Δ. Place 0 is missing.

    keys: at each level that of the bit that Δ does not have.
    """
    nodes = [keys[0]]  # those after the missing one
    for level, (key, bit) in enumerate(zip(keys[1:], bits[1:], strict=True)):
        known = _children(nodes)
        start = 2 * SEED_BYTES * level + SEED_BYTES * (1 - bit)
        sibling = _xor(key, sums[start : start + SEED_BYTES], *known[1 - bit])
        nodes = [*known[bit], sibling, *known[1 - bit]]
    return nodes


def proof_of_trees(digits: Sequence[Sequence[bytes]]) -> bytes:
    """T of each digit, and H. digits: for each digit all its leaves."""
    known = [[_of_leaf(leaf) for leaf in leaves] for leaves in digits]
    return b"".join(_xor(*each, size=PROOF_OF_LEAF) for each in known) + _joint(known)


def trees_hold(digits: Sequence[Sequence[bytes]], places: Sequence[int], proof: bytes) -> bool:
    """Whether the proof fits. digits: leaves as `punctured` has them. places: Δ's digits."""
    known = []
    for number, (leaves, place) in enumerate(zip(digits, places, strict=True)):
        told = proof[number * PROOF_OF_LEAF : (number + 1) * PROOF_OF_LEAF]
        others = [_of_leaf(leaf) for leaf in leaves]
        missing = _xor(told, *others, size=PROOF_OF_LEAF)
        renumbered = [missing, *others]
        known.append([renumbered[x ^ place] for x in range(len(renumbered))])
    return proof[len(digits) * PROOF_OF_LEAF :] == _joint(known)


def _joint(known: Sequence[Sequence[bytes]]) -> bytes:
    return digest(b"umpc tree check 1", *(b"".join(each) for each in known))


def _of_leaf(leaf: bytes) -> bytes:
    return expanded(leaf, "ot tree check", PROOF_OF_LEAF)


def _children(nodes: Sequence[bytes]) -> list[list[bytes]]:
    """The lower children of all nodes, and then the upper ones (GGM 1986)."""
    both = [expanded(node, "ot tree", 2 * SEED_BYTES) for node in nodes]
    return [[pair[:SEED_BYTES] for pair in both], [pair[SEED_BYTES:] for pair in both]]


def expanded(seed: bytes, purpose: str, size: int) -> bytes:
    """SHAKE-256 of the purpose and a seed of 32 bytes. It costs a sixth of `derive`."""
    return shake_256(purpose.encode() + seed).digest(size)


def _xor(*seeds: bytes, size: int = SEED_BYTES) -> bytes:
    total = 0
    for seed in seeds:
        total ^= int.from_bytes(seed, "little")
    return total.to_bytes(size, "little")
