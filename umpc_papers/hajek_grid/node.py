"""A node's side of `hajek-grid`: a share of the squares, and later one of the sum itself.

| step | what is new |
|---|---|
| prepare | noise for the squares of the projections alone |
| release | the share of 2·(P + noise), under zero shares; that of 2·S stays at the node |
| ask | all nodes' shares of P come; the share of 2·(S + noise), under other zero shares |

The noise of S is drawn after the question, for the bound of the local sensitivity that the shares
of P give. The node computes the bound itself, and from shares among which it looks for its own. The
law of the noise follows from public numbers, and the work of a draw from the law.

The share of 2·S waits in the node's ledger, under zero shares and a pad of the ledger's key. So a
node that is started again still answers, once.

*Reveals*: both shares are uniform given the sums over all nodes.
"""

from __future__ import annotations

from umpc.crypto.ring import Ring
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.grid.node import GridNode
from umpc.protocols.grid.node_without_dealer import DealerlessNode
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.study.sizes import Sizes
from umpc_papers.hajek_grid.binding import (
    FACTOR,
    bound_of,
    hajek_ring,
    squares_law,
    value_law,
)

RECORD_BYTES = 8
"""Bytes of the number of records that a node keeps for its answer."""


class TwoStepNode(UMpcNode):
    """The release of one sum, and of another one after a question."""

    _held: int | None = None
    told = b""
    _recalled: Sizes | None = None

    def own_noise(self, attempt: SharedAttempt) -> list[int]:
        """The noise of the squares. That of the sum follows when its size is known."""
        return [squares_law(attempt.sizes).draw(self._random_bits), 0]

    def _share(self) -> bytes:
        squares, self._held = self._totals()
        self.told = self._encoded([squares])
        return self.told

    # --- ask -----------------------------------------------------------------------------------

    def answer(self, question: bytes) -> bytes:
        """The share of 2·(S + noise), once. Raises: RemoteProtocolError for a bad question."""
        held, self._held = self._held, None
        if held is None:
            raise LocalProtocolError("one question is answered, after the release")
        sizes = self._recalled or self.attempt.sizes
        noise = value_law(sizes, bound_of(sizes, self._squares_of(question)))
        return element(hajek_ring(sizes), held + FACTOR * noise.draw(self._random_bits))

    def _squares_of(self, question: bytes) -> int:
        """The noisy P, from all nodes' shares of it."""
        size = len(self.told)
        shares = [question[start : start + size] for start in range(0, len(question), size)]
        own = shares[self.index] if self.index < len(shares) else b""
        if len(question) != size * len(self.study.nodes) or own != self.told:
            raise self._refused("it does not hold what every node released")
        doubled = noisy_sums(shares, 1)[0]
        if doubled % FACTOR:
            raise self._refused(f"the shares do not add up to a multiple of {FACTOR}")
        return doubled // FACTOR

    def _refused(self, reason: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"the coordinator asked a malformed question: {reason}; nothing was answered, run the "
            f"study again",
            culprit=self.study.coordinator,
            step="ask",
        )

    @property
    def rest(self) -> bytes:
        """The number of all records, and the share of 2·S under zero shares."""
        if self._held is None:
            raise LocalProtocolError("the share is kept after the release, and before the answer")
        sizes = self.attempt.sizes
        records = sizes.records.to_bytes(RECORD_BYTES, "little")
        return records + element(self.attempt.ring, self._held)

    def recall(self, share: bytes, rest: bytes) -> None:
        """The share that left, and the one that is still due."""
        if self.told:
            raise LocalProtocolError("a side that made its own share recalls none")
        self.told = share
        self._recalled = Sizes(self.study, int.from_bytes(rest[:RECORD_BYTES], "little"))
        self._held = int.from_bytes(rest[RECORD_BYTES:], "little")


def element(ring: Ring, value: int) -> bytes:
    """A number as one element of the ring."""
    return ring.encode(value).to_bytes(ring.bytes, "little")


class HajekGridNode(TwoStepNode, GridNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""


class DealerlessHajekNode(TwoStepNode, DealerlessNode):
    """One node of a study without a dealer. Args: as in SeedAgreement."""
