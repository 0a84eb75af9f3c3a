"""A node's table in one attempt: masked and sent once; then the node's share, from the total.

With H the table of all records, a = Σ a_v the sum of the masks and Ĥ = H + a the total, for a
symmetric A:

    HᵀAH = ĤᵀAĤ − 2·aᵀAĤ + aᵀAa

So node u's share of 2·S = HᵀAH − Σ f(r, r) is −2·⟨a_u, A·Ĥ⟩ + c_u − Σ f(r, r) over its own records
r, where c_u is its share of aᵀAa. The study's first node adds ĤᵀAĤ, which everybody could compute.

*Reveals*: the masked table is uniform to everybody who lacks its seed. Shares leave the node under
noise and zero shares only (`node.py`).

Memory: the total and A·Ĥ, each one 64-bit word for each cell, and those of an operator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto.ring import Elements
from umpc.crypto.signing import Credentials
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.protocols.arrays import Words
from umpc.protocols.grid.attempt import FACTOR, GridAttempt
from umpc.protocols.grid.masks import inner, mask_stream, widened
from umpc.protocols.grid.operators.form import Form
from umpc.protocols.grid.total import HISTOGRAM, STEP, TOTAL, check_signed, total_statement
from umpc.study.frames import Frame


class NodeTable:
    """One node's part of one attempt.

    Args:
        seed: the dealer's, of this node's mask. It is forgotten when the share is made.
        own, keys: what the node signs with, and all nodes' public keys.
    """

    def __init__(
        self,
        attempt: GridAttempt,
        node: int,
        seed: bytes,
        own: Credentials,
        keys: Sequence[bytes],
    ):
        self.attempt = attempt
        self.node = node
        self._seed = seed
        self._own = own
        self._keys = keys
        self._table: Words | None = None
        self._diagonal: list[int] = []
        self._is_masked = False
        self._total: Words | None = None
        self._came = 0
        self._hash = hashlib.sha256()
        self._shares: list[int] | None = None
        self._products: list[int] = []

    def __repr__(self) -> str:
        return f"NodeTable({self._own.name}, <redacted>)"

    def put(self, table: Words, diagonal: list[int]) -> None:
        """The node's own records: (cells,) uint64, and Σ f(r, r) of each sum."""
        if self._is_masked:
            raise LocalProtocolError("the mask was used before; it serves one table")
        self._table = table
        self._diagonal = diagonal

    def deal(self, products: list[int]) -> None:
        """The node's shares of aᵀAa, one for each sum."""
        self._products = products

    def masked(self) -> Iterator[Frame]:
        """Round 1: the table under its mask, frame by frame, once."""
        if self._is_masked or self._table is None:
            raise LocalProtocolError("a table is masked once, after its records were counted")
        self._is_masked = True
        layout = self.attempt.layout
        table = self._table
        self._table = None
        stream = mask_stream(self._seed, self.attempt.id)
        for start, stop in layout.ranges:
            mask: Elements = stream.words(stop - start, layout.ring.dtype)
            values = mask + table[start:stop].astype(layout.ring.dtype)
            yield layout.frame(HISTOGRAM, start, values)

    def take(self, frame: Frame) -> bool:
        """The next frame of the total. Returns: whether it was the last one.

        Raises: RemoteProtocolError naming the coordinator.
        """
        if not self._is_masked:
            raise LocalProtocolError("the total comes after this node's own table has left")
        layout = self.attempt.layout
        try:
            start, values = layout.read(TOTAL, self._came, frame)
        except EncodingError as error:
            coordinator = self.attempt.study.coordinator
            raise RemoteProtocolError(
                f"{coordinator}: {error.message}", culprit=coordinator, step=STEP
            ) from error
        if self._total is None:
            self._total = np.empty(layout.cells, dtype=np.uint64)
        self._total[start : start + len(values)] = values
        self._hash.update(frame.payload)
        self._came += 1
        return self._came == layout.frames

    @property
    def _statement(self) -> bytes:
        if self._came != self.attempt.layout.frames:
            raise LocalProtocolError("the total is not complete")
        return total_statement(self.attempt.id, self._hash.digest())

    def sign(self) -> bytes:
        """The node's signature of the total."""
        return self._own.sign(self._statement)

    def confirm(self, signatures: Sequence[bytes]) -> None:
        """Make the node's share of each sum, once all nodes have signed this total.

        Raises: RemoteProtocolError naming the coordinator.
        """
        relay = self.attempt.study.coordinator
        check_signed(self._statement, self.attempt.members, self._keys, signatures, relay)
        total = self._total
        if total is None or self._shares is not None:
            raise LocalProtocolError("shares are made once, from the total")
        forms = zip(self.attempt.grid.forms, self._products, self._diagonal, strict=True)
        self._shares = [self._share(total, *form) for form in forms]
        self._total = None
        self._seed = b""

    def _share(self, total: Words, form: Form, product: int, diagonal: int) -> int:
        """A node's share of one doubled sum, without noise."""
        image = form.apply(total)
        share = product - diagonal - FACTOR * self._with_mask(image)
        return share + inner(total, image) * (self.node == 0)

    def _with_mask(self, image: Words) -> int:
        """⟨a_u, image⟩ modulo 2^64, with the mask made piece by piece."""
        layout = self.attempt.layout
        stream = mask_stream(self._seed, self.attempt.id)
        found = 0
        for start, stop in layout.ranges:
            mask = widened(stream.words(stop - start, layout.ring.dtype))
            found += inner(mask, image[start:stop])
        return found

    @property
    def shares(self) -> list[int]:
        """The node's share of each doubled sum, without noise, as any integer."""
        if self._shares is None:
            raise LocalProtocolError("the total was not confirmed; there are no shares")
        return self._shares
