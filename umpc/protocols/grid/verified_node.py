"""The node's side of a grid whose nodes may lie: its table, lists and proof, and its checks.

`verified.py` has the exchanges, all that is said in them, and the checks that everybody makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto import field
from umpc.crypto.prg import SEED_BYTES, Stream, derive
from umpc.crypto.signing import Credentials
from umpc.errors import FailedCheck, LocalProtocolError
from umpc.mpc.arrays import Integers, Words
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid import lookup_proof as proofs
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.evidence import keeping_evidence
from umpc.protocols.grid.lookup_proof import CLEAR, SALT_BYTES, cells_by_class, verifiers
from umpc.protocols.grid.masked_form import STEP
from umpc.protocols.grid.node import GridNode, NodeTable
from umpc.protocols.grid.verified import (
    EXCHANGES,
    DealerAnswer,
    NodeStatement,
    Part,
    VerifiedTranscript,
    bytes_of,
    incomplete,
    inverses_of_cells,
)
from umpc.study.messages import Frame


class VerifiedTable(NodeTable):
    """One node's part of one attempt. Args: as of `NodeTable`; entropy: of salts and proofs.

    asks: 0 where the node is no verifier. Another one is told the total and what fixes R.
    """

    exchanges = EXCHANGES

    def __init__(
        self,
        attempt: GridAttempt,
        node: int,
        seed: bytes,
        own: Credentials,
        keys: Sequence[bytes],
        entropy: Entropy,
    ):
        super().__init__(attempt, node, seed, own, keys)
        self.transcript = VerifiedTranscript(attempt, keys)
        self.answer = DealerAnswer(attempt)
        self._said = self.transcript.said[node]
        self.asks = EXCHANGES * (node in verifiers(attempt))
        self.answers = EXCHANGES if self.asks else 1
        for each in self.transcript.said:
            each.is_short = not self.asks and each is not self._said
        self._entropy = entropy
        self._values: Words | None = None
        self._exchange = 0
        self._root = b""
        self._due = self._parts_due()

    @property
    def _heard_total(self) -> Words:
        if self._total is None:
            raise LocalProtocolError("the total has not come, or shares were made from it")
        return self._total.astype(np.uint64, copy=False)

    def put_places(self, places: Integers) -> None:
        """The cell of each of the node's records, of which its values are made."""
        self._values = proofs.values_of(self._said.shape, places)

    def _stream(self, label: str) -> Stream:
        return Stream(derive(self._seed, label, self.attempt.id))

    def masked(self) -> Iterator[Frame]:
        """The node's frames of the next exchange, once."""
        if self._exchange == 0:
            yield from self._open()
        else:
            yield from self._prove()

    def _open(self) -> Iterator[Frame]:
        """ĥ, ŷ, and what fixes them."""
        said, opening = self._said, self._said.opening
        # salted: the dealer, who knows the masks, tests no guess
        opening.data = self._entropy(SALT_BYTES)
        layout = self.attempt.layout
        state = proofs.table_hash(opening.salt, layout.cells * layout.ring.bytes)
        for frame in super().masked():
            state.update(frame.payload)
            yield frame
        opening.data += state.digest()
        # ŷ = y + b
        mask = field.field_elements(self._stream("verified list"), said.shape.products)
        said.cells.put(field.add(self._own_values, mask))
        yield from said.cells.frames()
        opening.data += self._own.sign(said.opened_as(self.attempt.id))
        yield from opening.frames()

    @property
    def _own_values(self) -> Words:
        if self._values is None:
            raise LocalProtocolError("the cells of the node's records were not counted")
        return self._values

    def _prove(self) -> Iterator[Frame]:
        """ŵ, and the masked proof."""
        said, values = self._said, self._own_values
        shape, x = said.shape, proofs.challenge_x(self._root)
        # w_i = 1/(X − y_i), none of bits
        inverse = proofs.inverses(x, values[: shape.inverted])
        mask = field.field_elements(self._stream("verified inverses"), 2 * shape.inverted)
        said.inverses.put(field.add(inverse.reshape(-1), mask))
        yield from said.inverses.frames()
        rho = proofs.challenge_rho(self._root, self.node, said.inverses_digest)
        powers = field.powers(rho, shape.products)
        factors = proofs.both_factors(shape, x, powers, values, inverse, CLEAR)
        wires = Stream(derive(self._entropy(SEED_BYTES), "wires", self.attempt.id))
        random = field.field_elements(wires, 4 * shape.wires).reshape(-1, 2)
        proof = proofs.make_proof(shape, *factors, random)
        mask = field.field_elements(self._stream("verified proof"), 2 * shape.size)
        said.proof.put(field.add(proof.reshape(-1), mask))
        yield from said.proof.frames()
        self._values = None
        said.signature.data = self._sign_statement()
        yield from said.signature.frames()

    def _parts_due(self) -> list[Part]:
        """The parts that the coordinator passes on of all others, after the total."""
        others = [each for each in self.transcript.said if each.node != self.node]
        return incomplete([part for each in others for part in each.parts[self._exchange]])

    def take(self, frame: Frame) -> bool:
        if self._exchange == 0 and self._came < self.attempt.layout.frames:
            is_last = super().take(frame) and not self._due
        else:
            part = self._due[0] if self._due else self.transcript.said[-1].opening
            part.take(frame, self.transcript.relay)
            if part.is_complete and self._due:
                self._due.pop(0)
            is_last = not self._due
        if is_last:
            self._end_exchange()
        return is_last

    def _end_exchange(self) -> None:
        if self._exchange == 0:
            self.transcript.check_opened(self.transcript.relay)
            # R: everything that was said before X
            self._root = self.transcript.root(bytes_of(self._heard_total))
        self._exchange += 1
        if self._exchange < EXCHANGES:
            self._due = self._parts_due()

    def hear(self, frame: Frame, dealer: bytes) -> bool:
        return self.answer.hear(frame, dealer, self._own.verify)

    @property
    def _own_statement(self) -> NodeStatement:
        if not self._said.proof.is_complete:
            raise LocalProtocolError("the dealer is asked after this node's proof has left")
        return self._said.statement(self._root)

    def _sign_statement(self) -> bytes:
        return self._own.sign(self._own_statement.signed_as(self.attempt.id, self.node))

    def sign(self) -> bytes:
        """The node's signature of its statement, or, where not all check, of its verdict.

        Raises: a verifier's, as `confirm`.
        """
        if self.transcript.all_verify or not self.asks:
            return self._sign_statement()
        self._check([each.signature.data for each in self.transcript.said])
        return self._own.sign(proofs.verdict_statement(self.attempt.id, self._root))

    def confirm(self, signatures: Sequence[bytes]) -> None:
        """Check all that was said, or that all verifiers did. Then make the node's shares.

        Raises: FailedCheck, RemoteProtocolError naming who lied.
        """
        if self.transcript.all_verify:
            self._check(signatures)
        else:
            self.transcript.check_verdicts(self._root, signatures, self.transcript.relay)
        self.make_shares(self._heard_total)

    def _check(self, signatures: Sequence[bytes]) -> None:
        """Check all that was said."""
        transcript, root = self.transcript, self._root
        with keeping_evidence(transcript, root, self.answer, self._own.verify):
            transcript.check_statements(root, signatures, self.answer, transcript.relay)
            found = transcript.check_proofs(root, self.answer)
        total = self._heard_total
        # Σ 1/(X − y) over all records = ⟨H, 1/(X − c)⟩, and the classes are as told
        looked = field.inner_fk(total, inverses_of_cells(root, len(total)))
        counted = [int(field.total(total[each])) for each in cells_by_class(self.attempt)]
        is_table = np.array_equal(found, looked)
        if not is_table or not transcript.classes_fit(counted, self.answer):
            raise FailedCheck(
                f"the total that {transcript.relay} told is not the sum of the nodes' records; "
                "no share was made",
                culprit=transcript.relay,
                step=STEP,
            )


class VerifiedNode(GridNode):
    """One node, one study, one attempt, in grade `lying_nodes`. Args: as in SeedAgreement."""

    _table: VerifiedTable | None = None

    def receive_seed(self, node_seed: bytes) -> None:
        super().receive_seed(node_seed)
        own = self.grid_attempt, self.index, node_seed, self._own, self._keys
        self._table = VerifiedTable(*own, self._entropy)

    def own_steps(self) -> Iterator[None]:
        """Count this node's records by cell, and note each record's cell."""
        yield from super().own_steps()
        if self._table is not None:
            self._table.put_places(self.grid_attempt.grid.cell_of(self.columns))
        yield
