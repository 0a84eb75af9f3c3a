"""The grid when nodes and the coordinator may lie: the opened total is proved to be a histogram.

`adversary = "lying_nodes"`. The dealer follows the protocol, colludes with nobody, and learns
nothing. The tables, lists and shares are in F (`umpc/crypto/prime_field.py`).

| exchange | from → to | what |
|---|---|---|
| 1 | node → coordinator | ĥ = h + a, ŷ = y + b, salt, H(salt, ĥ), and its signature of both |
|   | coordinator → node | Ĥ = Σ ĥ, and of each other node ŷ, salt, H(salt, ĥ), signature |
| 2 | node → coordinator | ŵ = w + e, w_i = 1/(X − y_i), the masked proof, and a signature |
|   | coordinator → dealer | all signed statements: root, H(salt, ŵ), H(salt, proof) |
|   | dealer → all | once, if they have one root: a coin, and the masks' part of all checks |
|   | coordinator → node | of each other node ŵ and the proof; last, all signatures |

A node's y are the cells of its records or, where that takes fewer bytes, the bits of its table. For
bits there is no ŵ. Each node then adds both parts up, and makes its share only if every proof holds
and the total is the sum of the lists. `lookup_proof.py` has the algebra, docs/verified_grid.md the
proof.

*Few verifiers.* Where max_colluding = t < N − 1, only the first t + 1 nodes do so. Last they sign
their verdict of the root. The others get Ĥ, salts and signed d_u, no answer, and then all verdicts.

*Who lied.* Bytes that do not fit a signature are the relay's fault, never the signer's. A proof
that fails is its author's, who signed it. The coordinator has every ĥ, so it names a node whose
table is not its list. If the total fails at a node nevertheless, the coordinator told another one.

*Reveals*: masked values; random salts; one point of each proof, and one number for each node, which
follow from what everybody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute

import numpy as np

from umpc.crypto import field
from umpc.crypto.prg import SEED_BYTES, Stream, derive
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import SIGNATURE_BYTES, Sign, Verify, is_signature
from umpc.errors import (
    EncodingError,
    ProvenLie,
    RemoteProtocolError,
)
from umpc.mpc.arrays import Words
from umpc.protocols.grid import lookup_proof as proofs
from umpc.protocols.grid.attempt import GridAttempt, GridDealing, check_signed
from umpc.protocols.grid.lookup_proof import (
    ANSWER,
    CLEAR,
    DIGEST_BYTES,
    INVERSES,
    LIST,
    MASKED,
    OPENING,
    OPENING_BYTES,
    PROOF,
    SALT_BYTES,
    STATEMENT,
    STATEMENT_BYTES,
    ProofShape,
    answer_head_bytes,
    answer_layout,
    cells_by_class,
    counts_of,
    shapes_of,
    verifiers,
)
from umpc.protocols.grid.masked_form import STEP, MaskLayout, mask_stream
from umpc.study.messages import Frame

EXCHANGES = 2


@dataclass(frozen=True)
class NodeStatement:
    """The bytes that a node signs of its transcript, for the dealer and for all others."""

    root: bytes
    inverses: bytes
    proof: bytes

    def encode(self) -> bytes:
        return self.root + self.inverses + self.proof

    @classmethod
    def decode(cls, data: bytes) -> NodeStatement:
        """Raises: EncodingError for another length."""
        if len(data) != STATEMENT_BYTES:
            raise EncodingError(f"a statement has {STATEMENT_BYTES} bytes, and {len(data)} came")
        return cls(data[:32], data[32:64], data[64:])

    def signed_as(self, attempt: bytes, node: int) -> bytes:
        """The bytes under the signature."""
        return proofs.transcript_statement(attempt, node, self.root, self.inverses, self.proof)


@dataclass
class FieldVector:
    """A vector of F that comes or leaves frame by frame."""

    step: str
    layout: MaskLayout
    values: Words = attribute(init=False)
    came: int = 0

    def __post_init__(self) -> None:
        self.values = np.empty(self.layout.cells, dtype=np.uint64)

    @property
    def is_complete(self) -> bool:
        return self.came == self.layout.frames

    @property
    def bytes(self) -> bytes:
        """All elements, 8 bytes each."""
        return bytes_of(self.values)

    def take(self, frame: Frame, sender: str) -> None:
        """The next frame. Raises: RemoteProtocolError naming the sender."""
        start, values = self.layout.heard(self.step, self.came, frame, sender)
        self.values[start : start + len(values)] = values
        self.came += 1

    def put(self, values: Words) -> None:
        """All values at once."""
        self.values[:] = values
        self.came = self.layout.frames

    def frames(self) -> Iterator[Frame]:
        for start, stop in self.layout.ranges:
            yield self.layout.frame(self.step, start, self.values[start:stop])


class FixedBytes:
    """Bytes of one node, of a fixed length, in one frame. Args: size: in bytes."""

    def __init__(self, step: str, node: int, size: int):
        self.step, self.node, self.size = step, node, size
        self.data = b""

    @property
    def is_complete(self) -> bool:
        return len(self.data) == self.size

    def take(self, frame: Frame, sender: str) -> None:
        """The one frame. Raises: RemoteProtocolError naming the sender."""
        is_due = frame.key == (self.step, 0, (self.node,), 0) and not self.data
        if not is_due or len(frame.payload) != self.size:
            raise RemoteProtocolError(
                f"{sender} sent {frame.label} where the {self.step} of node {self.node} was due",
                culprit=sender,
                step=STEP,
            )
        self.data = frame.payload

    def frames(self) -> Iterator[Frame]:
        yield Frame(self.step, (self.node,), 0, self.size, 8, self.data)


class TableOpening(FixedBytes):
    """Bytes of one node that fix its table and its list: salt, H(salt, ĥ), signature of d_u.

    A node that does not check gets d_u itself in place of H(salt, ĥ), and no list.
    """

    def __init__(self, node: int):
        super().__init__(OPENING, node, OPENING_BYTES)

    @property
    def salt(self) -> bytes:
        return self.data[:SALT_BYTES]

    @property
    def table(self) -> bytes:
        """H(salt, ĥ)."""
        return self.data[SALT_BYTES : SALT_BYTES + DIGEST_BYTES]

    @property
    def signature(self) -> bytes:
        return self.data[SALT_BYTES + DIGEST_BYTES :]


Part = FieldVector | FixedBytes
"""A part that comes or leaves frame by frame."""


def bytes_in(part: Part) -> bytes:
    """All that came."""
    return part.bytes if isinstance(part, FieldVector) else part.data


def put_bytes(part: Part, data: bytes) -> None:
    """All at once. Raises: EncodingError."""
    size = 8 * part.layout.cells if isinstance(part, FieldVector) else part.size
    if len(data) != size:
        raise EncodingError(f"a {part.step} has {size} bytes, and {len(data)} came")
    if isinstance(part, FixedBytes):
        part.data = data
        return
    part.put(PRIME.checked(np.frombuffer(data, dtype="<u8").astype(np.uint64)))


def incomplete(parts: Sequence[Part]) -> list[Part]:
    """The parts of which frames are due; a list without records has none."""
    return [part for part in parts if not part.is_complete]


class Said:
    """All that one node says in an attempt, as every verifier gets it.

    is_short: of it only salt, d_u and its signature are known here.
    """

    is_short = False

    def __init__(self, node: int, shape: ProofShape):
        self.node = node
        self.shape = shape
        self.cells = FieldVector(LIST, MaskLayout(PRIME, shape.products, (node,)))
        self.opening = TableOpening(node)
        self.inverses = FieldVector(INVERSES, MaskLayout(PRIME, 2 * shape.inverted, (node,)))
        self.proof = FieldVector(PROOF, MaskLayout(PRIME, 2 * shape.size, (node,)))
        self.signature = FixedBytes(STATEMENT, node, SIGNATURE_BYTES)

    def __repr__(self) -> str:
        return f"Said(node {self.node}, <redacted>)"

    @property
    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """The parts of each exchange, in their order."""
        if self.is_short:
            return (self.opening,), ()
        return (self.cells, self.opening), (self.inverses, self.proof, self.signature)

    def opened_as(self, attempt: bytes) -> bytes:
        """d_u, which fixes the table and the list."""
        opening = self.opening
        if self.is_short:
            return opening.table
        parts = opening.salt, opening.table, self.cells.bytes
        return proofs.opening_statement(attempt, self.node, *parts)

    def shortened(self, attempt: bytes) -> TableOpening:
        """The opening as a node gets it that does not check."""
        found = TableOpening(self.node)
        found.data = self.opening.salt + self.opened_as(attempt) + self.opening.signature
        return found

    def take_bytes(self, parts: Sequence[bytes]) -> None:
        """All parts at once, as bytes. Raises: EncodingError."""
        own = [part for exchange in self.parts for part in exchange]
        if len(parts) != len(own):
            raise EncodingError(f"a node says {len(own)} things, and {len(parts)} came")
        for part, data in zip(own, parts, strict=True):
            put_bytes(part, data)

    @property
    def inverses_digest(self) -> bytes:
        """H(salt, ŵ)."""
        return proofs.inverses_digest(self.opening.salt, self.inverses.bytes)

    def statement(self, root: bytes) -> NodeStatement:
        """The statement that belongs to these bytes."""
        proof = proofs.proof_digest(self.opening.salt, self.proof.bytes)
        return NodeStatement(root, self.inverses_digest, proof)


class DealerAnswer:
    """The dealer's one answer about an attempt: statements, a coin, and the masks' part.

    signature: the dealer's, of all that. A bit that is wrong here would name an honest node, so
        whoever hears the answer checks it.
    certificate: the dealer's, of that signature.
    """

    def __init__(self, attempt: GridAttempt):
        self.attempt = attempt
        self.coin = b""
        self.signature = b""
        self.certificate = b""
        self.statements: list[NodeStatement] = []
        self.signatures: list[bytes] = []
        self._shapes = shapes_of(attempt)
        classes = len(cells_by_class(attempt))
        self.parts = [
            FieldVector(ANSWER, answer_layout(shape, classes, node))
            for node, shape in enumerate(self._shapes)
        ]
        self._is_begun = False

    @property
    def is_complete(self) -> bool:
        return self._is_begun and all(part.is_complete for part in self.parts)

    def take(self, frame: Frame, sender: str) -> None:
        """The next frame. Raises: RemoteProtocolError naming the sender."""
        if self._is_begun:
            part = next((part for part in self.parts if not part.is_complete), self.parts[-1])
            part.take(frame, sender)
            return
        head = answer_head_bytes(len(self.parts))
        if frame.key != (ANSWER, 0, (), 0) or len(frame.payload) != head:
            raise RemoteProtocolError(
                f"{sender} sent {frame.label} where its answer was due", culprit=sender, step=STEP
            )
        self._is_begun = True
        self.coin = frame.payload[:SEED_BYTES]
        each = STATEMENT_BYTES + SIGNATURE_BYTES
        self.signature = frame.payload[-SIGNATURE_BYTES:]
        for start in range(SEED_BYTES, head - SIGNATURE_BYTES, each):
            said = frame.payload[start : start + each]
            self.statements.append(NodeStatement.decode(said[:STATEMENT_BYTES]))
            self.signatures.append(said[STATEMENT_BYTES:])

    def hear(self, frame: Frame, certificate: bytes, verify: Verify) -> bool:
        """The next frame, from the dealer. Returns: whether it was the last one.

        Raises: RemoteProtocolError naming the dealer; CertificateError.
        """
        dealer = self.attempt.study.dealer
        name = dealer.name if dealer else "the dealer"
        self.take(frame, name)
        if not self.is_complete:
            return False
        self.certificate = certificate
        check_dealer(self.attempt, certificate, verify, self.signed_as, self.signature)
        return True

    def begin(
        self, coin: bytes, statements: Sequence[NodeStatement], signatures: Sequence[bytes]
    ) -> None:
        """The dealer's own: everything but the parts."""
        self.coin, self._is_begun = coin, True
        self.statements, self.signatures = list(statements), list(signatures)

    def frames(self) -> Iterator[Frame]:
        said = zip(self.statements, self.signatures, strict=True)
        told = b"".join(each.encode() + signed for each, signed in said)
        payload = self.coin + told + self.signature
        yield Frame(ANSWER, (), 0, len(payload), 8, payload)
        for part in self.parts:
            yield from part.frames()

    @property
    def rows(self) -> list[bytes]:
        """A digest of what is told of each node."""
        rows = zip(self.statements, self.parts, strict=True)
        return [proofs.answer_row(each.inverses, each.proof, part.bytes) for each, part in rows]

    @property
    def signed_as(self) -> bytes:
        """The bytes under the dealer's signature."""
        root = self.statements[0].root
        return proofs.answer_statement(self.attempt.id, root, self.coin, self.rows)

    def opened(self, node: int) -> Words:
        """The point of a node's proof, from its masks alone. Returns: (opened, 2)."""
        size = self._shapes[node].opened
        return self.parts[node].values[: 2 * size].reshape(-1, 2)

    def looked_up(self, node: int) -> Words:
        """⟨a_u, 1/(X − c)⟩ less the lookup's side of the masks. Returns: (2,)."""
        size = self._shapes[node].opened
        return self.parts[node].values[2 * size : 2 * size + 2]

    def of_classes(self, node: int) -> Words:
        """Σ a_u over the cells of each public class. Returns: (classes,)."""
        size = self._shapes[node].opened
        return self.parts[node].values[2 * size + 2 :]


def bytes_of(elements: Words) -> bytes:
    """Elements of F, 8 bytes each."""
    return elements.astype("<u8", copy=False).tobytes()


def check_dealer(
    attempt: GridAttempt, certificate: bytes, verify: Verify, statement: bytes, signature: bytes
) -> None:
    """The study's dealer signed its answer. Raises: RemoteProtocolError, CertificateError."""
    dealer, holder = attempt.study.dealer, verify(certificate)
    name = dealer.name if dealer else "the dealer"
    is_dealer = (holder.name, holder.role) == (name, "dealer")
    if not is_dealer or not is_signature(holder.key, statement, signature):
        raise RemoteProtocolError(
            f"the answer that came from {name} is not the one that it signed: a bit changed on "
            "the way, or the dealer is at fault; nothing was released; run the study again",
            culprit=name,
            step=STEP,
        )


# --- what everybody checks ------------------------------------------------------------------------


class VerifiedTranscript:
    """All that was said in one attempt, and the checks of it. Args: keys: of all nodes."""

    def __init__(self, attempt: GridAttempt, keys: Sequence[bytes]):
        self.attempt = attempt
        self.keys = keys
        self.names = [member.name for member in attempt.members]
        self.relay = attempt.study.coordinator
        self.said = [Said(node, each) for node, each in enumerate(shapes_of(attempt))]
        self.all_verify = len(verifiers(attempt)) == len(self.said)

    def root(self, total: bytes) -> bytes:
        """R. Args: total: the bytes of Ĥ."""
        salts = [each.opening.salt for each in self.said]
        openings = [each.opened_as(self.attempt.id) for each in self.said]
        return proofs.root_of(self.attempt.id, openings, salts, total)

    def questions(self, root: bytes) -> list[bytes]:
        """All nodes' statements with their signatures, as the dealer gets them.

        Raises: RemoteProtocolError naming a node whose signature does not fit.
        """
        found = []
        for each, key, name in zip(self.said, self.keys, self.names, strict=True):
            statement = each.statement(root)
            signed = statement.signed_as(self.attempt.id, each.node)
            # so a statement of another root is its signer's fault, and never passed on
            if not is_signature(key, signed, each.signature.data):
                raise self._broken(f"a transcript that {name} has not signed came", name)
            found.append(statement.encode() + each.signature.data)
        return found

    def check_opened(self, sender: str | None) -> None:
        """Each opening must be signed. Args: sender: who passed them on; None: each its own.

        Raises: RemoteProtocolError naming the sender.
        """
        for each, key, name in zip(self.said, self.keys, self.names, strict=True):
            statement = each.opened_as(self.attempt.id)
            if not is_signature(key, statement, each.opening.signature):
                raise self._broken(f"other bytes than {name} signed came", sender or name)

    def check_verdicts(self, root: bytes, signatures: Sequence[bytes], relay: str | None) -> None:
        """All verifiers found that this transcript holds: one of t + 1 is honest.

        Args: relay: who passed them on; None: each its own.
        Raises: RemoteProtocolError naming the relay, or without one the verifier.
        """
        few = slice(len(verifiers(self.attempt)) if len(signatures) == len(self.said) else None)
        signers = self.attempt.members[few], self.keys[few], signatures[few]
        check_signed(proofs.verdict_statement(self.attempt.id, root), *signers, relay)

    def check_statements(
        self, root: bytes, signatures: Sequence[bytes], answer: DealerAnswer, sender: str | None
    ) -> None:
        """All nodes signed this transcript, and the dealer answered about it.

        Args: sender: as above.
        Raises: RemoteProtocolError naming the sender or the dealer, ProvenLie a node that signed
        two transcripts.
        """
        if len(signatures) != len(self.said):
            raise self._broken(f"{len(signatures)} signatures came", self.relay)
        rows = zip(self.said, self.keys, self.names, signatures, strict=True)
        for node, (each, key, name, signature) in enumerate(rows):
            statement = each.statement(root)
            signed = statement.signed_as(self.attempt.id, node)
            if not is_signature(key, signed, signature):
                raise self._broken(f"other bytes than {name} signed came", sender or name)
            # the relay may have passed on another one before
            each.signature.data = signature
            if answer.statements[node] != statement:
                other = answer.statements[node].signed_as(self.attempt.id, node)
                # two signatures of one node, of two transcripts
                is_two = is_signature(key, other, answer.signatures[node])
                dealer = self.attempt.study.dealer
                culprit = name if is_two or dealer is None else dealer.name
                kind = ProvenLie if is_two else RemoteProtocolError
                raise kind(
                    f"the dealer heard another statement of {name} than was checked here; "
                    f"{culprit} signed or passed on two; no share was made",
                    culprit=culprit,
                    step=STEP,
                )

    def check_proofs(self, root: bytes, answer: DealerAnswer) -> Words:
        """Every node's products hold. Returns: Σ over all lists of 1/(X − y), without masks: (2,).

        Raises: ProvenLie naming the node.
        """
        found = np.zeros(2, dtype=np.uint64)
        for node in range(len(self.said)):
            found = field.add(found, self.check_proof(node, root, answer))
        return found

    def check_proof(self, node: int, root: bytes, answer: DealerAnswer) -> Words:
        """One node's products hold. Returns: Σ 1/(X − y_i) + ⟨a, 1/(X − c)⟩: (2,)."""
        said = self.said[node]
        if not proof_holds(self.attempt.id, said, root, answer.coin, answer.opened(node)):
            raise ProvenLie(
                f"{self.names[node]} sent a proof that does not hold: what it masked is no "
                "list of records and no bits of a table; nothing was released",
                culprit=self.names[node],
                step=STEP,
            )
        return looked_up(said, root, answer.looked_up(node))

    def classes_fit(self, counted: Sequence[int], answer: DealerAnswer, *nodes: int) -> bool:
        """Whether a masked table has as many records of each public class as told.

        Args: counted: the table's sum over the cells of each class. nodes: whose table it is; the
            total of all by default.
        """
        places = nodes or range(len(self.said))
        told = [counts_of(self.attempt.study, member) for member in self.attempt.members]
        for number, masked in enumerate(counted):
            counts = [told[place][number] for place in places]
            masks = sum(int(answer.of_classes(place)[number]) for place in places)
            if (masked - masks - sum(counts)) % field.P:
                return False
        return True

    def _broken(self, what: str, culprit: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"{what}; {culprit} changed it, or signed something else; no share was made",
            culprit=culprit,
            step=STEP,
        )


def proof_holds(attempt: bytes, said: Said, root: bytes, coin: bytes, opened: Words) -> bool:
    """Whether one node's products hold. Args: opened: the dealer's point, of its masks."""
    shape = said.shape
    x = proofs.challenge_x(root)
    rho = proofs.challenge_rho(root, said.node, said.inverses_digest)
    r = proofs.challenge_r(attempt, coin)
    powers = field.powers(rho, shape.products)
    inverse = said.inverses.values.reshape(-1, 2)
    proof = said.proof.values.reshape(-1, 2)
    factors = proofs.both_factors(shape, x, powers, said.cells.values, inverse, CLEAR)
    # both parts of one point: what was sent, and the masks
    public = proofs.read_at(shape, *factors, proof, r)
    return proofs.products_hold(shape, field.add(public, opened), powers)


def looked_up(said: Said, root: bytes, masks: Words) -> Words:
    """Σ 1/(X − y_i) + ⟨a, 1/(X − c)⟩ of one node: (2,). Args: masks: the dealer's number."""
    sent = said.cells.values, said.inverses.values.reshape(-1, 2)
    return field.add(proofs.looked_up(said.shape, proofs.challenge_x(root), *sent), masks)


def inverses_of_cells(root: bytes, cells: int) -> Words:
    """1/(X − c) for all cells: (cells, 2)."""
    return proofs.inverses(proofs.challenge_x(root), np.arange(cells, dtype=np.uint64))


# --- dealer ---------------------------------------------------------------------------------------


class VerifiedDealing(GridDealing):
    """The dealer's part: seeds and numbers as without a promise, and one answer."""

    def is_signed(self, node: int, key: bytes, question: bytes) -> bool:
        """Whether a node signed a statement of this attempt."""
        if len(question) != STATEMENT_BYTES + SIGNATURE_BYTES:
            return False
        statement = NodeStatement.decode(question[:STATEMENT_BYTES])
        signed = statement.signed_as(self.attempt.id, node)
        return is_signature(key, signed, question[STATEMENT_BYTES:])

    def answer(self, questions: Sequence[bytes], sign: Sign) -> Iterator[Frame]:
        """The masks' part of all checks, once. The seeds are gone afterwards.

        Raises: RemoteProtocolError for two roots, or a second time; EncodingError.
        """
        statements = [NodeStatement.decode(each[:STATEMENT_BYTES]) for each in questions]
        signatures = [each[STATEMENT_BYTES:] for each in questions]
        seeds, self._seeds = self._seeds, []
        if not seeds:
            raise RemoteProtocolError(
                "this attempt was answered before; masks open one point",
                culprit=self.attempt.study.coordinator,
                step=STEP,
            )
        roots = {each.root for each in statements}
        # with two roots, an answer would open a function of records
        if len(roots) != 1 or len(statements) != len(seeds):
            raise RemoteProtocolError(
                f"{self.attempt.study.coordinator} passed on statements of two transcripts, and "
                "an honest coordinator passes on those of its own; there is no answer",
                culprit=self.attempt.study.coordinator,
                step=STEP,
            )
        root = roots.pop()
        found = DealerAnswer(self.attempt)
        # r is drawn when all proofs are fixed
        found.begin(self._entropy(SEED_BYTES), statements, signatures)
        x, r = proofs.challenge_x(root), proofs.challenge_r(self.attempt.id, found.coin)
        places = np.arange(self.attempt.layout.cells, dtype=np.uint64)
        at_cells = proofs.inverses(x, places)
        for node, (seed, shape) in enumerate(zip(seeds, shapes_of(self.attempt), strict=True)):
            rho = proofs.challenge_rho(root, node, statements[node].inverses)
            powers = field.powers(rho, shape.products)
            part = self._part(seed, shape, powers, x, at_cells, r)
            found.parts[node].put(part)
        found.signature = sign(found.signed_as)
        yield from found.frames()

    def _part(
        self, seed: bytes, shape: ProofShape, powers: Words, x: Words, at_cells: Words, r: Words
    ) -> Words:
        """A node's part, from its masks alone: words of F, as `DealerAnswer` has them."""
        attempt = self.attempt.id

        def mask(label: str, count: int) -> Words:
            return field.field_elements(Stream(derive(seed, label, attempt)), count)

        values = mask("verified list", shape.products)
        inverse = mask("verified inverses", 2 * shape.inverted).reshape(-1, 2)
        proof = mask("verified proof", 2 * shape.size).reshape(-1, 2)
        table = field.field_elements(mask_stream(seed, attempt), len(at_cells))
        # X − y = (X − ŷ) + b: the masks count negatively
        minus = field.negate(values), field.negate(inverse)
        factors = proofs.both_factors(shape, x, powers, *minus, MASKED)
        opened = proofs.read_at(shape, *factors, field.negate(proof), r)
        # one number: the two sides apart would tell a table's fingerprint
        said = proofs.looked_up(shape, x, values, inverse)
        looked_up = field.subtract(field.inner_fk(table, at_cells), said)
        classes = [field.total(table[cells]) for cells in cells_by_class(self.attempt)]
        return np.concatenate([opened.reshape(-1), looked_up, np.array(classes, dtype=np.uint64)])
