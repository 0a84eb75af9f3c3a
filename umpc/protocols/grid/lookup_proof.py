"""Proof that the opened total of all tables is a histogram, of which a dealer opens one point.

Each node sends, under masks that the dealer knows, its table ĥ = h + a, the list ŷ = y + b of its
records' cells, and after a challenge X the list ŵ = w + e of w_i = 1/(X − y_i). It proves in zero
knowledge that w_i·(X − y_i) = 1 for all i, and then

    Σ_u Σ_i 1/(X − y_i) = ⟨H, 1/(X − c)⟩

says that H counts cells of the table, each record once. Both sides are linear in what the nodes
sent and in what the dealer knows, so each side is added up where it is known.

*Bits.* Where they take fewer bytes, ŷ holds the bits v_i of each cell's count instead, and there is
no ŵ. The node proves v_i·(v_i − 1) = 0, and its side of the lookup is Σ_c T(c)/(X − c), where T(c)
is the number with these bits. Each value is a number of F, in either form.

*Linear proof.* The products Σ ρ^i·((X − y_i)·w_i − 1) = 0 of one node, or those of its bits, with
proofs of √n elements (Boneh, Boyle, Corrigan-Gibbs, Gilboa & Ishai 2019, section 4). The factors
are cut into L wires a side, of N − 1 calls each. A wire is the polynomial of degree below N that
has a random value at the first N-th root of unity, and the wire's factors at the others. The proof
is the random values, and the values of p = Σ f_j·g_j at the 2N-th roots. At one r outside F, the
check reads f_j(r), g_j(r), p(r) and Σ p. They are uniform, or follow from what everybody knows: the
random values hide the wires at one r, so a proof is read at one r only.

Paper: none of this setting; spec/verified_grid.py has the protocol, docs/verified_grid.md the
proof.
Elements of F are uint64 below p; elements of K have a last axis of 2 (`umpc/crypto/field.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from umpc.crypto import field
from umpc.crypto.field_transforms import extended, weights_at
from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import SIGNATURE_BYTES, begun_digest, digest
from umpc.errors import RangeError, StudyError
from umpc.mpc.arrays import Integers, Words
from umpc.mpc.chunks import require
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.masked_form import HISTOGRAM, TOTAL, MaskLayout
from umpc.protocols.grid.operators import Grid, TripleForm
from umpc.protocols.grid.operators.axis import ONE
from umpc.protocols.grid.settings import instead
from umpc.study.document import Study
from umpc.study.messages import frame_bytes
from umpc.study.sizes import Member

Digest = Any
"""One of hashlib."""

CLEAR = 1
"""The public part of 1/(X − y): X counts where it is known, and once."""
MASKED = 0


VALUE_BYTES = 8
"""Bytes of a bit of a cell."""
LIST_BYTES = 24
"""Bytes of a record in both lists."""


@dataclass(frozen=True)
class ProofShape:
    """The wires and calls of a proof of `products` products, one for each value of a node.

    width: bits of a cell, if the values are those of the node's table; 0 if they list its records.
    """

    products: int
    width: int = 0

    @classmethod
    def of(cls, cells: int, records: int) -> ProofShape:
        """A node's shape, in the form of fewer bytes."""
        width = records.bit_length()
        if VALUE_BYTES * cells * width < LIST_BYTES * records:
            return cls(cells * width, width)
        return cls(records)

    @property
    def inverted(self) -> int:
        """The values of which the node says the inverses w."""
        return 0 if self.width else self.products

    @cached_property
    def places(self) -> int:
        """N ≥ 2, the least power of two with (N − 1)² ≥ n: the places of a wire."""
        found = 2
        while (found - 1) ** 2 < self.products:
            found *= 2
        return found

    @property
    def calls(self) -> int:
        """The factors of a wire: N − 1."""
        return self.places - 1

    @property
    def wires(self) -> int:
        """L, the wires of a side."""
        return -(-self.products // self.calls)

    @property
    def size(self) -> int:
        """Elements of K in a proof: a random value for each wire, and 2N values of p."""
        return 2 * self.wires + 2 * self.places

    @property
    def opened(self) -> int:
        """Elements of K that a check reads: the wires at r, p at r, and Σ p over the calls."""
        return 2 * self.wires + 2

    @property
    def bytes(self) -> int:
        """Bytes of the values, of w, the proof and the point that the dealer opens, about."""
        return 8 * (self.products + 2 * (self.inverted + self.size + self.opened))

    def as_wires(self, factors: Words) -> Words:
        """(products, 2) → (wires, calls, 2). Number c·L + j is in call c of wire j."""
        padded = np.zeros((self.wires * self.calls, 2), dtype=np.uint64)
        padded[: self.products] = factors
        return padded.reshape(self.calls, self.wires, 2).swapaxes(0, 1)


def values_of(shape: ProofShape, places: Integers) -> Words:
    """A node's values: the cell of each record, or the bits of its table, the lowest first.

    Args: places: (records,), the cell of each record. Returns: (products,).
    """
    if not shape.width:
        return places.astype(np.uint64)
    cells = shape.products // shape.width
    counts = np.bincount(places, minlength=cells)[:cells, None]
    return (counts >> np.arange(shape.width) & 1).astype(np.uint64).reshape(-1)


def both_factors(
    shape: ProofShape, x: Words, powers: Words, values: Words, inverse: Words, part: int
) -> tuple[Words, Words]:
    """The factors of all products, linear in values and inverses but for the `part` that is CLEAR.

    Args: values: (products,). inverse: (inverted, 2). Returns: (products, 2) twice.
    """
    if not shape.width:
        # (X − y_i)·ρ^i and w_i
        return left_factors(x, values, powers, part), inverse
    # v_i·ρ^i and v_i − 1
    right = np.zeros((len(values), 2), dtype=np.uint64)
    right[:, 0] = field.subtract(values, np.full_like(values, part))
    return field.negate(left_factors(x, values, powers, MASKED)), right


def left_factors(x: Words, cells: Words, powers: Words, part: int) -> Words:
    """((X if `part` is CLEAR else 0) − y_i)·ρ^i, which is linear in the cells.

    Args: x: (2,). cells: (records,) in F. powers: (records, 2), ρ^1, ρ^2, …

    Returns: (records, 2).
    """
    factors = np.zeros((len(cells), 2), dtype=np.uint64)
    if part:
        factors[:] = x
    factors[:, 0] = field.subtract(factors[:, 0], cells)
    return field.times(factors, powers)


def make_proof(shape: ProofShape, left: Words, right: Words, random: Words) -> Words:
    """A node's proof of Σ left_i·right_i. Args: random: (2 · wires, 2) fresh, of each wire.

    Returns: (size, 2).
    """
    wires = shape.wires
    sides = np.empty((2 * wires, shape.places, 2), dtype=np.uint64)
    # a random value at the first root hides the wire at one r
    sides[:, 0] = random
    sides[:wires, 1:] = shape.as_wires(left)
    sides[wires:, 1:] = shape.as_wires(right)
    # values at the N-th roots → values at the 2N-th roots
    wide = extended(sides, -2)
    products = field.times(wide[:wires], wide[wires:])
    # p = Σ f_j·g_j, of degree 2N − 2
    values = field.total(products, 0)
    return np.concatenate([random, values])


def read_at(shape: ProofShape, left: Words, right: Words, proof: Words, r: Words) -> Words:
    """The wires at r, p at r, and Σ p over the calls. It is linear in all but r.

    Returns: (opened, 2).
    """
    wires, places = shape.wires, shape.places
    narrow, wide = weights_at(places, r), weights_at(2 * places, r)
    found = np.empty((shape.opened, 2), dtype=np.uint64)
    for side, factors in enumerate((left, right)):
        calls = field.inner_k(shape.as_wires(factors), narrow[1:])
        # Lagrange: the random value and the factors at r
        first = field.times(proof[side * wires : (side + 1) * wires], narrow[0])
        found[side * wires : (side + 1) * wires] = field.add(calls, first)
    values = proof[2 * wires :]
    found[-2] = field.inner_k(values, wide)
    # the N-th roots are every other 2N-th root
    found[-1] = field.total(values[2::2], 0)
    return found


def products_hold(shape: ProofShape, opened: Words, powers: Words) -> bool:
    """Whether the opened point belongs to true products. Args: opened: of both parts, added up."""
    wires = shape.wires
    at_r = field.inner_k(opened[:wires], opened[wires : 2 * wires])
    # p(r) = Σ f_j(r)·g_j(r), and every product is ρ^i, or 0 of a bit
    is_product = np.array_equal(at_r, opened[-2])
    due = field.total(powers[: shape.inverted], 0)
    return is_product and np.array_equal(opened[-1], due)


def looked_up(shape: ProofShape, x: Words, values: Words, inverse: Words) -> Words:
    """A node's side of the lookup, linear in both: Σ w_i, or Σ T(c)/(X − c) of bits. Returns: (2,).

    Args: as of `both_factors`.
    """
    found = field.total(inverse, 0)
    if not shape.width:
        return found
    bits = values.reshape(-1, shape.width)
    at_cells = inverses(x, np.arange(len(bits), dtype=np.uint64))
    # T(c) = Σ 2^k·v, from the highest bit
    for k in reversed(range(shape.width)):
        one = field.inner_fk(np.ascontiguousarray(bits[:, k]), at_cells)
        found = field.add(field.add(found, found), one)
    return found


def inverses(x: Words, cells: Words) -> Words:
    """1/(X − y_i) for places of F. X is outside F, so there is no pole. Returns: (cells, 2)."""
    differences = np.empty((len(cells), 2), dtype=np.uint64)
    differences[:] = x
    differences[:, 0] = field.subtract(differences[:, 0], cells)
    return field.inverse_k(differences)


# --- messages, and their sizes --------------------------------------------------------------------

LIST = "list"
OPENING = "opening"
INVERSES = "inverses"
PROOF = "proof"
ANSWER = "answer"
"""The steps of the frames of a verified total, besides those of a table."""
DIGEST_BYTES = 32
SALT_BYTES = 32
OPENING_BYTES = SALT_BYTES + DIGEST_BYTES + SIGNATURE_BYTES
STATEMENT_BYTES = 3 * DIGEST_BYTES
STATEMENT = "statement"
MOST_GROWTH_BITS = 60
"""So that an operator is applied to pieces of three bits or more (`PrimeField.linear`)."""
MOST_RECORDS = 1 << 25
"""The most records of all nodes: 800 MB of lists at every node. A liar chooses its number."""


def answer_layout(shape: ProofShape, classes: int, node: int) -> MaskLayout:
    """One point of a proof, one number of the lookup, and one of each public class."""
    return MaskLayout(PRIME, 2 * shape.opened + 2 + classes, (node,))


def answer_head_bytes(nodes: int) -> int:
    """A coin, each node's signed statement, and the dealer's signature."""
    return SEED_BYTES + nodes * (STATEMENT_BYTES + SIGNATURE_BYTES) + SIGNATURE_BYTES


def cells_by_class(attempt: GridAttempt) -> list[Integers]:
    """The cells of each class of a public label; all cells are one class without it."""
    return classes_of(attempt.study, require(attempt.grid, Grid))


def classes_of(study: Study, grid: Grid) -> list[Integers]:
    """`cells_by_class` of any attempt at a study."""
    if not study.two_sample:
        # so bits of a table, too, are those of as many records as told
        return [np.arange(grid.cells)]
    layout = grid.layout
    place = next(k for k, axis in enumerate(layout.axes) if axis.field == study.label)
    digits = np.indices(layout.shape[1:])[place].reshape(-1)
    return [np.flatnonzero(digits == each) for each in range(layout.axes[place].size)]


def counts_of(study: Study, member: Member) -> list[int]:
    """A node's records of each class, as it told them."""
    return list(member.classes) if study.two_sample else [member.records]


def shapes_of(attempt: GridAttempt) -> list[ProofShape]:
    """The shape of each node's proof."""
    cells = attempt.layout.cells
    return [ProofShape.of(cells, member.records) for member in attempt.members]


def verifiers(attempt: GridAttempt) -> range:
    """The nodes that check for all: the study's first t + 1, of which at most t lie."""
    return range(attempt.study.max_colluding + 1)


def bytes_by_step(attempt: GridAttempt, node: int) -> dict[tuple[str, int], int]:
    """Bytes of all frames that a node sends and gets on data, by (step, round)."""
    is_verifier = node in verifiers(attempt)
    shapes = shapes_of(attempt)
    found = {(step, 0): attempt.layout.wire_bytes(step) for step in (HISTOGRAM, TOTAL)}
    # a node's own frames go up, and to a verifier those of all others come down
    for place, shape in enumerate(shapes):
        layouts = (
            (LIST, MaskLayout(PRIME, shape.products, (place,))),
            (INVERSES, MaskLayout(PRIME, 2 * shape.inverted, (place,))),
            (PROOF, MaskLayout(PRIME, 2 * shape.size, (place,))),
            (ANSWER, answer_layout(shape, len(cells_by_class(attempt)), place)),
        )
        sizes = {step: layout.wire_bytes(step) for step, layout in layouts}
        for step, size in ((OPENING, OPENING_BYTES), (STATEMENT, SIGNATURE_BYTES)):
            sizes[step] = frame_bytes(step, (place,), 0, size, 8, size)
        for step, size in sizes.items():
            is_own = place == node and step != ANSWER
            if is_verifier or is_own or step == OPENING:
                found[step, 0] = found.get((step, 0), 0) + size
    if is_verifier:
        head = answer_head_bytes(len(shapes))
        found[ANSWER, 0] += frame_bytes(ANSWER, (), 0, head, 8, head)
    return found


def check_table(study: Study, grid: Grid) -> None:
    """Refuse a table with a cell that no record has, or in which records add up values.

    A list proves that each record is in a cell. So each cell must be a record of the domain, or a
    liar's cell would give a kernel values that it never has. Raises: StudyError, RangeError.
    """
    named = [axis.field for axis in grid.axes if axis != ONE]
    # a record that adds its values to a table could add any
    reason = "" if grid.counts else "in this one records add up values, as for a product"
    # beside an axis of x + y, one of x has cells of no record, and the kernel's range is no bound
    if not all(named) or len(set(named)) != len(named):
        reason = f"in this one ({grid.text}) a cell may be that of no record"
    if reason:
        raise StudyError(
            f'backend = "grid" with adversary = "{study.adversary}" is of tables that count '
            f"records by their fields, and {reason}; {instead(study)}"
        )
    growth = max(
        form.growth if isinstance(form, TripleForm) else grid.cells * form.magnitude
        for form in grid.forms
    )
    if growth.bit_length() > MOST_GROWTH_BITS:
        raise RangeError(
            f"a weight or a row of the grid's operators may reach {growth}, and at most "
            f"2^{MOST_GROWTH_BITS} is possible in this grade; take fewer cells, or "
            f"{instead(study)}"
        )


def check_lists(study: Study, records: Sequence[int]) -> None:
    """Refuse lists that would fill every node's memory. Raises: RangeError."""
    if sum(records) > MOST_RECORDS:
        raise RangeError(
            f"every node gets up to {LIST_BYTES} bytes for each record, and the nodes have "
            f"{sum(records)} records; at most {MOST_RECORDS} are possible in this grade; "
            f"{instead(study)}"
        )


# --- digests and challenges -----------------------------------------------------------------------
#
# spec/verified_messages.py has the same functions. Salted digests let a dealer, who knows all
# masks, test no guess of a table or a list.


def table_hash(salt: bytes, size: int) -> Digest:
    """A hash that takes the `size` bytes of a masked table piece by piece: H(salt, ĥ)."""
    return begun_digest(b"umpc masked table 1", salt, rest=size)


def opening_statement(attempt: bytes, node: int, salt: bytes, table: bytes, cells: bytes) -> bytes:
    """d_u, which a node signs before the challenge X. Args: table: H(salt, ĥ). cells: ŷ."""
    return digest(b"umpc verified table 1", attempt, _number(node), salt, table, cells)


def root_of(attempt: bytes, openings: list[bytes], salts: list[bytes], total: bytes) -> bytes:
    """R: everything that was said before X, by everybody. Args: openings: d_u. total: Ĥ."""
    of_total = digest(b"umpc masked total 1", *salts, total)
    return digest(b"umpc verified root 1", attempt, *openings, of_total)


def inverses_digest(salt: bytes, inverse: bytes) -> bytes:
    """H(salt, ŵ)."""
    return digest(b"umpc masked inverses 1", salt, inverse)


def proof_digest(salt: bytes, proof: bytes) -> bytes:
    """H(salt, masked proof)."""
    return digest(b"umpc masked proof 1", salt, proof)


def transcript_statement(
    attempt: bytes, node: int, root: bytes, inverse: bytes, proof: bytes
) -> bytes:
    """The bytes that a node signs of all that it heard and sent. Args: three digests."""
    return digest(b"umpc verified proof 1", attempt, _number(node), root, inverse, proof)


def verdict_statement(attempt: bytes, root: bytes) -> bytes:
    """The bytes that a verifier signs, for nodes that do not check, when all that R fixes holds."""
    return digest(b"umpc verified verdict 1", attempt, root)


def answer_statement(attempt: bytes, root: bytes, coin: bytes, rows: Sequence[bytes]) -> bytes:
    """The bytes that the dealer signs. Args: rows: `answer_row` of each node."""
    return digest(b"umpc verified answer 1", attempt, root, coin, *rows)


def answer_row(inverse: bytes, proof: bytes, part: bytes) -> bytes:
    """Both digests that a node signed, and the part that answers them."""
    return digest(b"umpc verified part 1", inverse, proof, part)


def challenge_x(root: bytes) -> Words:
    """X, when all tables and lists are fixed."""
    return field.challenge(digest(b"umpc lookup point 1", root))


def challenge_rho(root: bytes, node: int, inverse: bytes) -> Words:
    """ρ of one node, when its list ŵ is fixed."""
    return field.challenge(digest(b"umpc proof powers 1", root, _number(node), inverse))


def challenge_r(attempt: bytes, coin: bytes) -> Words:
    """r, when all proofs are fixed. Args: coin: the dealer's, fresh."""
    return field.challenge(digest(b"umpc proof point 1", attempt, coin))


def _number(node: int) -> bytes:
    return node.to_bytes(8, "little")
