"""A sum over all sets of records from the total of masked tables, and what the dealer deals for it.

H is the table of all records, a the sum of all masks, and Ĥ = H + a the total. Modulo 2^64,
and modulo p where nodes may lie,

    2·S = ĤᵀAĤ − ⟨a, 2·A·Ĥ⟩ + aᵀAa − ⟨diagonal, H⟩                        over pairs,
    6·S = value(Ĥ) − ⟨a, gradient(Ĥ)⟩ + ⟨Ĥ, g⟩ + s + ⟨diagonal, H⟩        over triples,

where g = ∇C(a) and s = −C(a) − Q(a) (`operators/triples.py`). Each addend is a public function of
Ĥ, or linear in something of which every node has a share: a, g, s or aᵀAa, and H.

*Masks.* The masks of a grid's histograms, and the frames in which vectors of cells travel.

A mask is the AES key stream of a seed that the dealer gives to one node, for one attempt: the
attempt's identity is among the labels from which the stream's key is derived. So a seed that was
dealt twice would still give two different masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from umpc.crypto.prg import Stream, derive
from umpc.crypto.ring import Elements, Ring
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.mpc.arrays import Words
from umpc.protocols.grid.operators import DyadicGrid, Form, Grid, TripleForm
from umpc.protocols.grid.operators.matrix import PairForm
from umpc.study.messages import MAX_PAYLOAD, Frame, frame_bytes

STEP = "evaluate"
HISTOGRAM = "histogram"
TOTAL = "total"
"""The steps of a node's frames, and of the total's."""
FRAME_BYTES = MAX_PAYLOAD // 2
"""Bytes of a full frame: one is packed while another one is on its way."""


def mask_stream(seed: bytes, attempt: bytes) -> Stream:
    """The stream of a node's mask, one ring element for each cell in their order."""
    # a_u: spec/grid.py, `deal`
    return Stream(derive(seed, "grid mask", attempt))


def vector_stream(seed: bytes, attempt: bytes, number: int) -> Stream:
    """The stream of a node's share of the vector that is dealt for one sum. Args: number: its."""
    # g_u: this node's share of ∇C(a)
    return Stream(derive(seed, "grid vector", attempt, number))


def widened(elements: Elements) -> Words:
    """Elements of any ring as 64-bit words; arithmetic modulo 2^64 is right modulo 2^w too."""
    return elements.astype(np.uint64, copy=False)


@dataclass(frozen=True)
class MaskLayout:
    """The cells of a vector, frame by frame.

    Args: ring: of the elements. cells: D. owners: whose vector it is, where each node has one.
    """

    ring: Ring
    cells: int
    owners: tuple[int, ...] = ()

    @property
    def in_frame(self) -> int:
        """The cells of a full frame."""
        return FRAME_BYTES // self.ring.bytes

    @property
    def ranges(self) -> Iterator[tuple[int, int]]:
        """The first cell of each frame, and the first cell after it."""
        for start in range(0, self.cells, self.in_frame):
            yield start, min(start + self.in_frame, self.cells)

    @property
    def frames(self) -> int:
        """The number of frames."""
        return -(-self.cells // self.in_frame)

    def frame(self, step: str, start: int, values: Elements) -> Frame:
        """The frame of the cells from `start` on."""
        number = start // self.in_frame
        payload = values.astype(self.ring.dtype.newbyteorder("<"), copy=False).tobytes()
        return Frame(step, self.owners, number, len(values), self.ring.bits, payload)

    def read(self, step: str, number: int, frame: Frame) -> tuple[int, Elements]:
        """The first cell and the elements of a frame. Args: number: of the frame that is due.

        Raises: EncodingError where it is another frame, or has another size.
        """
        start = number * self.in_frame
        count = min(self.in_frame, self.cells - start)
        due = (step, 0, self.owners, number)
        size = count * self.ring.bytes
        sizes = (frame.count, frame.width, len(frame.payload))
        # frames come in order, each once
        if number >= self.frames or frame.key != due:
            expected = f"frame {number} of {step}" if number < self.frames else "no frame"
            raise EncodingError(f"{frame.label} came where {expected} was due")
        if sizes != (count, self.ring.bits, size):
            raise EncodingError(
                f"frame {number} of {step} has {count} cells of {self.ring.bits} bits, and "
                f"{frame.count} of {frame.width} bits came in {len(frame.payload)} bytes"
            )
        kind = self.ring.dtype.newbyteorder("<")
        values = np.frombuffer(frame.payload, dtype=kind).astype(self.ring.dtype, copy=False)
        return start, self.ring.checked(values)

    def heard(self, step: str, number: int, frame: Frame, sender: str) -> tuple[int, Elements]:
        """`read` of a sender's frame. Raises: RemoteProtocolError naming it."""
        try:
            return self.read(step, number, frame)
        except EncodingError as error:
            raise RemoteProtocolError(
                f"{sender}: {error.message}", culprit=sender, step=STEP
            ) from error

    def wire_bytes(self, step: str) -> int:
        """Bytes of all frames of a vector."""
        full, rest = divmod(self.cells, self.in_frame)
        counts = [self.in_frame] * full + [rest] * bool(rest)
        return sum(
            frame_bytes(step, self.owners, number, count, self.ring.bits, count * self.ring.bytes)
            for number, count in enumerate(counts)
        )


# --- masked form ----------------------------------------------------------------------------------

VECTORS_FROM = 3
"""The least degree for which the dealer deals shares of a vector besides those of a number."""


def factor_of(degree: int) -> int:
    """The number of times that a set is in a sum over ordered records: shares are of so many S."""
    return factorial(degree)


def working_kind(ring: Ring, degree: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The type of vectors on which operators work: the ring's own, or 64 bits over triples."""
    return np.dtype(np.uint64) if degree >= VECTORS_FROM else ring.dtype


@dataclass(frozen=True)
class PairSum:
    """A sum over pairs, doubled. Args: cells: of the table."""

    form: Form
    ring: Ring
    cells: int
    times = 2
    """The multiple of ⟨mask, image⟩ that a share is less by."""

    def image(self, total: Elements) -> Elements:
        """The vector by which masks are multiplied. Args: total: (cells,) of `working_kind`."""
        growth = self.cells * self.form.magnitude
        return self.ring.linear(self.form.apply, total, growth)

    def public(self, total: Elements, image: Elements) -> int:
        """The part of the sum that everybody knows. Args: image: of this total.

        Returns: congruent to the part.
        """
        # Ĥᵀ A Ĥ, which everybody can compute
        return self.ring.inner(total, image)

    def dealt(self, mask: Elements) -> tuple[Elements | None, int]:
        """The vector, if there is one, and the number of which the dealer deals shares.

        Args: mask: (cells,) of `working_kind`, the sum of all masks.
        """
        # c = aᵀ A a, of which the nodes get shares
        return None, self.ring.inner(mask, self.image(mask))

    def own(self, table: Words) -> int:
        """A node's part that is linear in its own table. Args: table: (cells,) uint64."""
        if isinstance(self.form, PairForm) and not self.form.own.terms:
            return 0  # f(r, r) is 0, as for differences and signs of them
        # pairs (r, r) are no pairs: take them out
        factors = self.ring.array(self.form.diagonal().view(np.int64))
        return -self.ring.inner(factors, table.astype(factors.dtype, copy=False))


@dataclass(frozen=True)
class TripleSum:
    """A sum over triples, six times. Its methods are those of `PairSum`."""

    form: TripleForm
    ring: Ring
    times = 1

    def image(self, total: Elements) -> Elements:
        return self.form.gradient(widened(total))

    def public(self, total: Elements, image: Elements) -> int:
        # C(Ĥ) − Q(Ĥ), public
        return self.form.value(widened(total))

    def dealt(self, mask: Elements) -> tuple[Elements | None, int]:
        # ∇C(a) and −C(a) − Q(a): spec/grid.py, `deal`
        return self.form.dealt(widened(mask))

    def own(self, table: Words) -> int:
        return self.ring.inner(self.form.diagonal(), table)


MaskedForm = PairSum | TripleSum
"""One of a study's sums."""


def masked_forms(grid: Grid | DyadicGrid, ring: Ring) -> Iterator[MaskedForm]:
    """The sums of a grid, whose shares are in a ring."""
    for form in grid.forms:
        if isinstance(form, TripleForm):
            yield TripleSum(form.over(ring), ring)
        else:
            yield PairSum(form, ring, grid.cells)
