"""Evidence of a lie in a verified grid: what a node signed, and what everybody can check of it.

| lie | what the evidence has | what a reader checks |
|---|---|---|
| two statements in one attempt | both, signed: digests only | both signatures |
| a false proof | its messages, the dealer's signed part | digests, signatures, the proof |
| a table that is not its list | the same, and its masked table | also both sums |

It holds messages of one node only, and of the others 32 bytes each, which hide what they said. With
the masks, which the dealer knows, the last two open that node's records. So evidence never goes to
the dealer (docs/verified_grid.md). A reader needs no word of the process that shows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from umpc.crypto import field
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import Verify, is_signature
from umpc.decoding import decode
from umpc.errors import CertificateError, EncodingError, FailedCheck, ProvenLie
from umpc.mpc.chunks import require
from umpc.protocols.grid import lookup_proof as proofs
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.masked_form import HISTOGRAM, STEP, MaskLayout
from umpc.protocols.grid.operators import Grid
from umpc.protocols.grid.verified import (
    DealerAnswer,
    FieldVector,
    NodeStatement,
    Said,
    VerifiedTranscript,
    bytes_in,
    inverses_of_cells,
    looked_up,
    proof_holds,
    put_bytes,
)
from umpc.study.attempt import facts_digest, identity_of
from umpc.study.document import Study
from umpc.study.sizes import Member


class SignedLie(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One node's signed messages of one attempt, as JSON with bytes in base64.

    study: the document. node: its place. member: what it said of itself, with its certificate.
    members: `facts_digest` of each node. seed: the joint seed.
    statement: its `NodeStatement`, and `signature` of it.
    other: another statement, with its signature behind it; empty where a proof is false.
    parts: what it said, as `Said.parts` has it. table: ĥ, where it is not the list.
    coin, rows, part, answered: the dealer's coin, a digest for each node, the part about this one,
        and the dealer's signature.
    """

    study: bytes
    node: int
    member: Member
    members: tuple[bytes, ...]
    seed: bytes
    statement: bytes
    signature: bytes
    other: bytes = b""
    parts: tuple[bytes, ...] = ()
    table: bytes = b""
    coin: bytes = b""
    rows: tuple[bytes, ...] = ()
    part: bytes = b""
    answered: bytes = b""

    def __repr__(self) -> str:
        return f"SignedLie(of {self.member.name}, <redacted>)"


@contextmanager
def keeping_evidence(
    transcript: VerifiedTranscript,
    root: bytes,
    answer: DealerAnswer,
    verify: Verify,
    tables: Sequence[FieldVector] = (),
) -> Iterator[None]:
    """Add its evidence to a proven lie, and the evidence's SHA-256 to its message.

    It reads the evidence first, as anybody else will. A lie that it does not prove is none.

    Args: tables: each node's masked table, where they are known.
    Raises: ProvenLie; FailedCheck that names nobody.
    """
    try:
        yield
    except ProvenLie as lie:
        node = transcript.names.index(lie.culprit or "")
        evidence = msgspec.json.encode(evidence_of(transcript, node, root, answer, tables))
        check_evidence(evidence, transcript.attempt.study, verify, answer.certificate)
        told = f"{lie.message}; evidence {hashlib.sha256(evidence).hexdigest()}"
        proven = ProvenLie(told, culprit=lie.culprit, step=lie.step)
        proven.evidence = evidence
        raise proven from lie


def check_evidence(evidence: bytes, study: Study, verify: Verify, dealer: bytes) -> None:
    """Read one's own evidence as anybody else will. Args: as of `proven_by`.

    Raises: FailedCheck that names nobody, where it proves no lie.
    """
    why = ""
    try:
        proven_by(evidence, study, verify, dealer)
    except (EncodingError, CertificateError) as error:
        why = error.message
    if why:
        raise FailedCheck(
            f"a check of signed messages failed here, and they do not show whose fault it is "
            f"({why}); nothing was released; run the study again, and if it fails again, look at "
            "the machine of the process that says so",
            step=STEP,
        )


def evidence_of(
    transcript: VerifiedTranscript,
    node: int,
    root: bytes,
    answer: DealerAnswer,
    tables: Sequence[FieldVector] = (),
) -> SignedLie:
    """The least of a node's messages that shows its lie. Args: as above."""
    attempt, said = transcript.attempt, transcript.said[node]
    statement, heard = said.statement(root), answer.statements[node]
    evidence = SignedLie(
        study=attempt.study.encode(),
        node=node,
        member=attempt.members[node],
        members=tuple(facts_digest(member) for member in attempt.members),
        seed=attempt.seed,
        statement=heard.encode(),
        signature=answer.signatures[node],
    )
    if statement != heard:
        return msgspec.structs.replace(evidence, other=statement.encode() + said.signature.data)
    evidence = msgspec.structs.replace(
        evidence,
        parts=tuple(bytes_in(part) for exchange in said.parts for part in exchange),
        coin=answer.coin,
        rows=tuple(answer.rows),
        part=answer.parts[node].bytes,
        answered=answer.signature,
    )
    holds = proof_holds(attempt.id, said, root, answer.coin, answer.opened(node))
    if not (holds and tables):
        return evidence
    return msgspec.structs.replace(evidence, table=tables[node].bytes)


# --- a reader's checks ----------------------------------------------------------------------------


def proven_by(data: bytes, study: Study, verify: Verify, dealer: bytes) -> tuple[str, str]:
    """A node that lied, and how, as `StudyProtocol.proven_lie` says. Args: study: its `study`.

    Raises: EncodingError where the evidence proves no lie; CertificateError.
    """
    try:
        shown = decode(data, SignedLie)
        name = study.nodes[shown.node].name if shown.node >= 0 else ""
        own = shown.members[shown.node]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, IndexError) as error:
        raise EncodingError(f"this is no evidence of a lie: {error}") from error
    counts = shown.member.records, shown.member.first_class
    _require(0 <= counts[1] <= counts[0] <= proofs.MOST_RECORDS, "its numbers of records")
    holder = verify(shown.member.certificate)
    _require((holder.name, holder.role) == (name, "node"), "its certificate is of somebody else")
    # the attempt covers the study and what each node said of itself
    is_member = shown.member.name == name and facts_digest(shown.member) == own
    _require(is_member and len(shown.members) == len(study.nodes), "its members are others")
    attempt = identity_of(study.hash, shown.members, shown.seed)
    statement = NodeStatement.decode(shown.statement)

    def is_signed(each: NodeStatement, signature: bytes) -> bool:
        return is_signature(holder.key, each.signed_as(attempt, shown.node), signature)

    _require(is_signed(statement, shown.signature), f"{name} has not signed its statement")
    if shown.other:
        size = len(shown.statement)
        other = NodeStatement.decode(shown.other[:size])
        _require(is_signed(other, shown.other[size:]), f"{name} has not signed both statements")
        _require(other != statement, "both statements are one")
        return name, "signed two statements in one attempt"
    grid = require(grid_of(study), Grid)
    said = Said(shown.node, proofs.ProofShape.of(grid.cells, shown.member.records))
    said.take_bytes(shown.parts)
    opened = is_signature(holder.key, said.opened_as(attempt), said.opening.signature)
    is_own = opened and said.statement(statement.root) == statement
    _require(is_own, f"its messages are not those that {name} signed")
    _require(bool(dealer), "that takes the dealer's certificate, and none was shown")
    witness = verify(dealer)
    is_dealer = study.dealer is not None and witness.name == study.dealer.name
    _require(is_dealer and witness.role == "dealer", "the dealer's certificate is of another one")
    answer = proofs.answer_statement(attempt, statement.root, shown.coin, shown.rows)
    row = proofs.answer_row(statement.inverses, statement.proof, shown.part)
    is_told = len(shown.rows) == len(study.nodes) and shown.rows[shown.node] == row
    is_told = is_told and is_signature(witness.key, answer, shown.answered)
    _require(is_told, "the dealer has not signed its answer")
    return name, _false_proof(shown, study, grid, attempt, said, statement.root)


def _false_proof(
    shown: SignedLie, study: Study, grid: Grid, attempt: bytes, said: Said, root: bytes
) -> str:
    """The lie in words, from signed messages. Raises: EncodingError where nothing is."""
    classes = proofs.classes_of(study, grid)
    masks = FieldVector(proofs.ANSWER, proofs.answer_layout(said.shape, len(classes), shown.node))
    put_bytes(masks, shown.part)
    size = 2 * said.shape.opened
    opened, looked = masks.values[:size].reshape(-1, 2), masks.values[size : size + 2]
    if not proof_holds(attempt, said, root, shown.coin, opened):
        return "sent a proof that does not hold"
    _require(bool(shown.table), "its proof holds")
    table = FieldVector(HISTOGRAM, MaskLayout(PRIME, grid.cells))
    put_bytes(table, shown.table)
    state = proofs.table_hash(said.opening.salt, len(shown.table))
    state.update(shown.table)
    _require(state.digest() == said.opening.table, "its table is not the one that was signed")
    at_cells = field.inner_fk(table.values, inverses_of_cells(root, grid.cells))
    told = np.array(proofs.counts_of(study, shown.member), dtype=np.uint64)
    counts = [int(field.total(table.values[cells])) for cells in classes]
    counted = np.array(counts, dtype=np.uint64)
    is_table = np.array_equal(looked_up(said, root, looked), at_cells)
    fits = np.array_equal(field.subtract(counted, masks.values[size + 2 :]), told)
    _require(not (is_table and fits), "its table is that of its records")
    return "sent a table that is not the histogram of its records"


def _require(holds: bool, why: str) -> None:
    """Raises: EncodingError."""
    if not holds:
        raise EncodingError(f"the evidence proves no lie: {why}")
