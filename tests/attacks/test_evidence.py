"""Evidence of a lie: it holds the liar's messages only, and proves nothing of anybody honest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tests.attacks.test_verified_grid import (
    COUNTS,
    DEALER,
    LIAR,
    PROOFS,
    TABLES,
    WEIGHTY_BITS,
    at,
    begun,
    begun_with_bits,
    signed_by_liar,
    two_classes,
    values_with,
)
from tests.support.studies import Entropy, random_tables
from tests.support.verified import VerifiedRun
from umpc.errors import (
    CertificateError,
    EncodingError,
    FailedCheck,
    ProvenLie,
    RemoteProtocolError,
    UmpcError,
)
from umpc.proto import codec
from umpc.protocols.grid.evidence import SignedLie, evidence_of
from umpc.protocols.grid.verified import INVERSES, PROOF
from umpc.protocols.registry import proven_lie
from umpc.simulation import AUTHORITY
from umpc.testing import CHECKS, lying, without


def lie_of(step: Callable[[], None]) -> ProvenLie:
    """The proven lie with which a step ends."""
    with pytest.raises(ProvenLie) as found:
        step()
    assert hashlib.sha256(found.value.evidence).hexdigest() in found.value.message
    return found.value


def proven(evidence: bytes, dealer: bytes = DEALER.certificate) -> tuple[str, str]:
    study, name, lie = proven_lie(evidence, AUTHORITY.verify, dealer)
    assert study.coordinator == "coordinator"
    return name, lie


def changed(evidence: bytes, **values) -> bytes:
    """The evidence with other values in it."""
    shown = msgspec.json.decode(evidence, type=SignedLie)
    return msgspec.json.encode(msgspec.structs.replace(shown, **values))


def read(evidence: bytes) -> SignedLie:
    return msgspec.json.decode(evidence, type=SignedLie)


def proves_nothing(evidence: bytes, dealer: bytes = DEALER.certificate) -> None:
    with pytest.raises((EncodingError, CertificateError)):
        proven(evidence, dealer)


def false_proof(name: str = "w = 0") -> VerifiedRun:
    run = begun().up().down()
    return run.up(liar=LIAR, lie=lying("node", **PROOFS[name])).ask().down()


def false_table(name: str = "amplified cell") -> VerifiedRun:
    run = begun()
    TABLES[name](run)
    return run.up().down().up().ask().down()


def two_statements() -> bytes:
    """An honest node's evidence where liar and coordinator collude."""
    run = begun().up().down().up()
    statement, signature = signed_by_liar(run, proof=bytes(32))
    questions = list(run.adding.questions)
    questions[LIAR] = statement.encode() + signature
    run.ask(questions).down()
    return lie_of(lambda: run.tables[0].confirm(run.signatures)).evidence


def by_coordinator(run: VerifiedRun) -> bytes:
    return lie_of(lambda: run.adding.check_signed(run.signatures)).evidence


# --- each lie is proven by the evidence alone -----------------------------------------------------


@pytest.mark.parametrize("name", PROOFS)
def test_a_false_proof_is_proven_by_the_coordinator_and_by_each_node(name):
    run = false_proof(name)
    told = run.signatures
    found = [by_coordinator(run)]
    found += [lie_of(lambda one=run.tables[p]: one.confirm(told)).evidence for p in (0, 2)]
    for evidence in found:
        assert proven(evidence) == ("node-1", "sent a proof that does not hold")
        assert not read(evidence).table, "a false proof needs no table"


@pytest.mark.parametrize("name", TABLES)
def test_a_false_table_is_proven_by_the_coordinator(name):
    evidence = by_coordinator(false_table(name))
    assert proven(evidence) == ("node-1", "sent a table that is not the histogram of its records")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_not_of_its_bits_is_proven_by_the_coordinator(name):
    run = begun_with_bits()
    TABLES[name](run)
    evidence = by_coordinator(run.up().down().up().ask().down())
    assert proven(evidence) == ("node-1", "sent a table that is not the histogram of its records")


def test_one_record_more_than_told_in_a_table_and_its_bits_is_proven():
    run = begun_with_bits()
    run.put_records(LIAR, [*run.cells_of(LIAR), 0])
    evidence = by_coordinator(run.up().down().up().ask().down())
    assert proven(evidence) == ("node-1", "sent a table that is not the histogram of its records")


def test_values_that_are_no_bits_are_proven_by_the_coordinator_and_by_each_node():
    run = begun_with_bits()
    with values_with(*WEIGHTY_BITS):
        run.tables[LIAR].put_places(np.array(run.cells_of(LIAR)))
    run.up().down().up().ask().down()
    told = run.signatures
    found = [by_coordinator(run)]
    found += [lie_of(lambda one=run.tables[p]: one.confirm(told)).evidence for p in (0, 2)]
    for evidence in found:
        assert proven(evidence) == ("node-1", "sent a proof that does not hold")


def test_false_counts_of_classes_are_proven():
    run = two_classes()
    labels = run.nodes[LIAR].columns["label"]
    first, second = np.flatnonzero(labels == 0)[0], np.flatnonzero(labels == 1)[0]
    cells = run.cells_of(LIAR)
    run.put_records(LIAR, [cells[first] if k == second else c for k, c in enumerate(cells)])
    evidence = by_coordinator(run.up().down().up().ask().down())
    assert proven(evidence)[0] == "node-1"


def test_two_statements_are_proven_by_digests_alone_and_need_no_dealer():
    evidence = two_statements()
    assert proven(evidence, b"") == ("node-1", "signed two statements in one attempt")
    shown = read(evidence)
    assert (shown.parts, shown.table, shown.part, shown.coin) == ((), b"", b"", b"")


def test_a_signature_that_its_relay_changed_before_makes_no_evidence_void():
    """Nodes take signatures from the last message, which they check."""
    run = begun().up().down().up()
    statement, signature = signed_by_liar(run, proof=bytes(32))
    questions = list(run.adding.questions)
    questions[LIAR] = statement.encode() + signature
    run.ask(questions)
    told = run.signatures
    run.adding.transcript.said[LIAR].signature.data = bytes(64)
    run.down()
    evidence = lie_of(lambda: run.tables[0].confirm(told)).evidence
    assert proven(evidence, b"")[0] == "node-1"


# --- a wrong bit in the dealer's answer is nobody's lie -------------------------------------------


COIN, ROW, ANSWER_FRAMES = 32, 96 + 64, 4
"""The first frame has a coin, of each node a statement with its signature, and the dealer's."""
BITS = {
    "coin": (0, 0),
    "inverses of node-1": (0, COIN + ROW + 32),
    "proof of node-1": (0, COIN + ROW + 64),
    "the dealer's signature": (0, COIN + 3 * ROW + 5),
    "a point of node-1": (2, 0),
    "a sum of node-1": (2, -1),
    "a point of node-0": (1, 3),
}
"""Frame and byte in which one bit is wrong."""


def heard_wrongly(by: str, frame: int, byte: int) -> UmpcError | None:
    """How an honest run ends where the coordinator or node-0 hears one bit wrongly."""
    run = begun().up().down().up()
    frames = run.answer()
    assert len(frames) == ANSWER_FRAMES
    hearing = {"coordinator": run.adding, "node-0": run.tables[0]}[by]
    changed = bytearray(frames[frame].payload)
    changed[byte] ^= 1
    wrong = [*frames[:frame], replace(frames[frame], payload=bytes(changed)), *frames[frame + 1 :]]
    for each in (*run.tables, run.adding):
        told = wrong if each is hearing else frames
        try:
            for one in told:
                each.hear(one, DEALER.certificate)
        except UmpcError as error:
            assert each is hearing
            return error
    run.down()
    step = run.adding.check_signed if by == "coordinator" else run.tables[0].confirm
    try:
        step(run.signatures)
    except UmpcError as error:
        return error
    return None


@pytest.mark.parametrize("by", ["coordinator", "node-0"])
@pytest.mark.parametrize("bit", BITS)
def test_a_wrong_bit_in_the_dealers_answer_names_the_dealer(bit, by):
    error = heard_wrongly(by, *BITS[bit])
    assert type(error) is RemoteProtocolError and error.culprit == "dealer"
    assert CHECKS["the dealer signed its answer"][0] in error.message


def test_power_without_the_check_and_the_reading_a_wrong_bit_would_prove_a_lie_of_somebody_honest():
    """Where the dealer's signature is not checked, the evidence is read before it accuses."""
    with without("the dealer signed its answer"):
        for by in ("coordinator", "node-0"):
            error = heard_wrongly(by, *BITS["a point of node-1"])
            assert type(error) is FailedCheck and error.culprit is None
        with without("the evidence proves the lie"):
            error = heard_wrongly("coordinator", *BITS["a point of node-1"])
    assert isinstance(error, ProvenLie) and error.culprit == "node-1"
    proves_nothing(error.evidence)


@pytest.mark.parametrize(
    "certificate",
    [
        AUTHORITY.credentials("node-2").certificate,
        AUTHORITY.credentials("dealer", "node").certificate,
        AUTHORITY.credentials("other", "dealer").certificate,
    ],
    ids=["a node's", "another role's", "another dealer's"],
)
def test_an_answer_under_another_certificate_is_refused(certificate):
    run = begun().up().down().up()
    *frames, last = run.answer()
    for frame in frames:
        assert not run.adding.hear(frame, certificate)
    with pytest.raises(RemoteProtocolError) as found:
        run.adding.hear(last, certificate)
    assert found.value.culprit == "dealer"


# --- what it holds --------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [false_proof, false_table])
def test_evidence_holds_nothing_that_an_honest_node_said(made):
    """No salt, list, table, inverses or proof of another node, and no total."""
    run = made()
    evidence = by_coordinator(run)
    shown = read(evidence)
    fields = [msgspec.to_builtins(getattr(shown, each)) for each in shown.__struct_fields__]
    flat = repr(fields) + evidence.decode()
    transcript = run.adding.transcript
    for place in (0, 2):
        said = transcript.said[place]
        secrets = [said.opening.salt, said.cells.bytes, said.inverses.bytes, said.proof.bytes]
        secrets += [said.opening.table, run.adding.answer.parts[place].bytes]
        for secret in filter(None, secrets):
            text = msgspec.json.encode(secret).decode().strip('"').rstrip("=")[:-1]
            assert text not in flat
    total = msgspec.json.encode(run.total_bytes).decode().strip('"').rstrip("=")[:-1]
    assert total not in flat
    own = msgspec.json.encode(transcript.said[LIAR].opening.data).decode().strip('"')
    assert own in flat, "power: the liar's own bytes are found in this way"
    assert "redacted" in repr(shown)


# --- ways to frame somebody honest ----------------------------------------------------------------


def honest_evidence(node: int, *, table: bool, run: VerifiedRun | None = None) -> bytes:
    """All that a coordinator can show of an honest node, under the dealer's true signature."""
    run = (run or begun()).up().down().up().ask().down()
    tables = run.adding.tables if table else ()
    root = run.adding.transcript.root(run.total_bytes)
    run.adding.transcript.check_statements(root, run.signatures, run.adding.answer, None)
    made = evidence_of(run.adding.transcript, node, root, run.adding.answer, tables)
    return msgspec.json.encode(made)


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("node", [0, 1, 2])
def test_true_messages_of_an_honest_node_prove_nothing(node, table):
    proves_nothing(honest_evidence(node, table=table))


def flipped(value):
    """A value of the evidence with one bit changed, or one more."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, tuple):
        return (flipped(value[0]), *value[1:])
    return value + 1


FIELDS = [
    "node", "members", "seed", "statement", "signature", "parts", "table",
    "coin", "rows", "part", "answered",
]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_true_messages_can_be_changed_to_a_lie(field):
    """Whoever changes a bit of what a node or the dealer signed has no evidence any more."""
    evidence = honest_evidence(0, table=True)
    shown = read(evidence)
    proves_nothing(changed(evidence, **{field: flipped(getattr(shown, field))}))


@pytest.mark.parametrize("place", range(5))
def test_no_message_of_an_honest_node_can_be_replaced(place):
    """List, opening, inverses, proof, signature: each by that of another honest node."""
    evidence = honest_evidence(0, table=True)
    parts = list(read(evidence).parts)
    assert len(parts) == 5
    parts[place] = flipped(parts[place])
    proves_nothing(changed(evidence, parts=tuple(parts)))


@pytest.mark.parametrize("step", [INVERSES, PROOF])
def test_what_a_relay_changed_is_no_evidence_where_a_node_forgets_to_compare_digests(step):
    """Such a node accuses whose proof it was, in vain: that node never signed these bytes."""
    run = begun().up().down().up().ask().down(at(step, 0, of=LIAR))
    told = run.signatures
    with without("a proof is as signed"):
        with pytest.raises(FailedCheck, match="do not show whose fault") as found:
            run.tables[0].confirm(told)
        assert type(found.value) is FailedCheck and found.value.culprit is None
        with without("the evidence proves the lie"):
            accusation = lie_of(lambda: run.tables[0].confirm(told))
    assert accusation.culprit == "node-1"
    proves_nothing(accusation.evidence)


def test_facts_of_a_member_cannot_be_changed():
    """Other counts of records would make a true table a lie."""
    evidence = honest_evidence(0, table=True)
    member = read(evidence).member
    for values in ({"first_class": 1}, {"records": member.records + 1}, {"name": "node-1"}):
        proves_nothing(changed(evidence, member=replace(member, **values)))


@pytest.mark.parametrize(
    "values",
    [{"records": -5}, {"first_class": -1}, {"records": 2**70}, {"records": 2**40}],
    ids=str,
)
def test_numbers_of_records_that_no_node_may_say_are_no_evidence(values):
    evidence = honest_evidence(0, table=True)
    proves_nothing(changed(evidence, member=replace(read(evidence).member, **values)))


def test_one_statement_signed_twice_is_no_lie():
    """Signatures are random: two of them may be of one statement."""
    evidence = honest_evidence(0, table=False)
    shown = read(evidence)
    run = begun().up().down().up()
    again = run.tables[0]
    other = shown.statement + again.sign()
    proves_nothing(changed(evidence, other=other))
    proves_nothing(changed(evidence, other=shown.statement + shown.signature))


def test_statements_of_two_attempts_are_no_lie():
    """An honest node signs one in each attempt at the same study."""
    evidence, study = honest_evidence(0, table=False), begun().study
    columns = [{each: table[each] for each in ("x", "y")} for table in random_tables(COUNTS, "b")]
    again = VerifiedRun(study, columns, Entropy("another attempt")).prepare().count()
    second = read(honest_evidence(0, table=False, run=again))
    assert second.study == read(evidence).study and second.seed != read(evidence).seed
    proves_nothing(changed(evidence, other=second.statement + second.signature))


def test_a_liar_cannot_show_its_messages_as_those_of_another_node():
    evidence = by_coordinator(false_proof())
    honest = read(honest_evidence(0, table=False))
    proves_nothing(changed(evidence, node=0, member=honest.member))
    proves_nothing(changed(evidence, member=honest.member))
    proves_nothing(changed(evidence, node=-1))


def test_another_dealers_word_counts_for_nothing():
    """Nor that of a node, nor of a dealer that the study does not name."""
    evidence = by_coordinator(false_proof())
    for name, role in (("node-2", "node"), ("other", "dealer"), ("dealer", "node")):
        proves_nothing(evidence, AUTHORITY.credentials(name, role).certificate)
    proves_nothing(evidence, b"")


def test_a_nodes_word_alone_is_no_proof():
    """A failure that came over the network proves nothing, whatever its name."""
    lie = ProvenLie("node-0 lied", culprit="node-0", step="evaluate")
    told: UmpcError = codec.error_of(codec.failure_of(lie))
    assert type(told) is FailedCheck and told.exit_code != ProvenLie.exit_code


OTHERS = (b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b'{"study": "\xff"}', b'{"node": "x"}')


@pytest.mark.parametrize("data", OTHERS, ids=range(len(OTHERS)))
def test_other_bytes_are_no_evidence(data):
    proves_nothing(data)
