"""The grid when nodes lie: umpc refuses each bad vector, and needs the check that refuses it.

A vector has messages. Bytes under a signature of their node came from it, through the coordinator,
so the coordinator of umpc gets them first. Others are the coordinator's, and a node gets them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

from spec.cases import verified_forms
from spec.cases import verified_grid as cases
from spec.cases.verified_grid import DEALT, HONEST
from spec.joint_seed import sign
from spec.verified_messages import digests_of, proof_statement, table_digest
from tests.spec.replaying import replay_tests
from tests.spec.test_joint_seed import verify
from tests.spec.test_verified_grid import DEALER, attempt_of, table_of_node
from tests.support.grid import grid_study
from tests.support.protocols import checked
from tests.support.studies import SPEARMAN
from umpc.crypto.signing import Credentials
from umpc.dealer.server import AskedAttempt
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.masked_form import HISTOGRAM, TOTAL
from umpc.protocols.grid.protocol import VerifiedTotal
from umpc.protocols.grid.verified import (
    ANSWER,
    INVERSES,
    LIST,
    OPENING,
    PROOF,
    STATEMENT,
    VerifiedDealing,
)
from umpc.protocols.grid.verified_node import VerifiedTable
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.attempt import sign_member
from umpc.study.cost import Measured
from umpc.study.messages import Frame
from umpc.study.settings import LYING_NODES
from umpc.testing import without
from umpc.transport.tls import Peer

NONCE = 2**207
COORDINATOR = Peer("coordinator", "coordinator")


# --- messages as frames ---------------------------------------------------------------------------


def words(step: str, data: bytes, *owners: int) -> Frame:
    """A vector of F in one frame, whatever its length is."""
    return Frame(step, owners, 0, len(data) // 8, 64, data)


def octets(step: str, data: bytes, *owners: int) -> Frame:
    return Frame(step, owners, 0, len(data), 8, data)


def first_frames(place: int, sent: dict[str, bytes]) -> Iterator[Frame]:
    """A node's first messages."""
    table = table_digest(sent["salt"], sent["table"])
    yield words(HISTOGRAM, sent["table"])
    yield words(LIST, sent["list"], place)
    yield octets(OPENING, sent["salt"] + table + sent["signature"], place)


def opened_frames(place: int, opened: dict[str, Any]) -> Iterator[Frame]:
    """A node is told this of all first messages; a list that is missing does not come."""
    yield words(TOTAL, opened["total"])
    for other in range(len(opened["salts"])):
        if other == place:
            continue
        if other < len(opened["lists"]):
            yield words(LIST, opened["lists"][other], other)
        opening = (opened[part][other] for part in ("salts", "tables", "signatures"))
        yield octets(OPENING, b"".join(opening), other)


def second_frames(place: int, sent: dict[str, bytes], signature: bytes) -> Iterator[Frame]:
    """A node's next messages; a missing proof does not come, nor do inverses of bits."""
    if sent:
        if sent["inverses"]:
            yield words(INVERSES, sent["inverses"], place)
        yield words(PROOF, sent["proof"], place)
    yield octets(STATEMENT, signature, place)


def answer_frames(told: dict[str, Any], signatures: list[bytes]) -> Iterator[Frame]:
    """The dealer's answer. Args: signatures: of the statements that it heard."""
    rows = zip(told["digests"], signatures, strict=True)
    head = b"".join(told["root"] + b"".join(row) + signed for row, signed in rows)
    yield octets(ANSWER, told["coin"] + head + told["signature"])
    for place, part in enumerate(told["parts"]):
        yield words(ANSWER, part, place)


def cases_of(study: dict[str, Any]) -> Any:
    """The vectors' own inputs; where nodes send bits, all cells are one class."""
    return verified_forms if len(study["classes"]) == 1 else cases


# --- parties --------------------------------------------------------------------------------------


def signed_attempt(study: dict[str, Any]) -> GridAttempt:
    """The attempt, whose members have the vectors' keys."""
    made = attempt_of(study)
    owners = zip(made.members, study["names"], study["keys"], cases.KEYS, strict=True)
    made.members = [
        sign_member(
            made.study.hash,
            member,
            Credentials(name, name.encode() + key, lambda s, k=secret: sign(k, s, NONCE), verify),
        )
        for member, name, key, secret in owners
    ]
    return made


def node_at(made: GridAttempt, study: dict[str, Any], place: int) -> VerifiedTable:
    """A node that has sent its first message."""
    node = table_of_node(made, study, cases_of(study).OWNS[place])
    node.deal([0])
    assert list(node.masked())
    return node


def take(node: VerifiedTable, frames: Iterable[Frame]) -> None:
    for frame in frames:
        node.take(frame)


def coordinator_with(made: GridAttempt, study: dict[str, Any], firsts: list[Any]) -> VerifiedTotal:
    """A coordinator that has all first messages."""
    total = VerifiedTotal(made, study["keys"], verify)
    for place, sent in enumerate(firsts):
        for frame in first_frames(place, sent):
            total.add(place, frame)
    total.end_exchange()
    return total


def dealer_of(made: GridAttempt, seeds: list[bytes]) -> VerifiedDealing:
    """A dealer that has dealt. Args: seeds: none if it has answered before."""
    drawn = chain(DEALT["seeds"], repeat(bytes(32), 3), repeat(DEALT["coin"]))
    dealing = VerifiedDealing(made, lambda size: next(drawn))
    if not seeds:
        asked(made, dealing, HONEST["statements"])
    return dealing


def signed_by_dealer(statement: bytes) -> bytes:
    return sign(DEALT["key"], statement, NONCE)


def asked(made: GridAttempt, dealing: VerifiedDealing, statements: list[Any]) -> list[Frame]:
    """The answer, through the door of the dealer's server."""
    rows = [each["root"] + b"".join(each["digests"]) + each["signature"] for each in statements]

    async def answer() -> list[Frame]:
        return await AskedAttempt(made, dealing, verify, signed_by_dealer).answer(COORDINATOR, rows)

    return asyncio.run(answer())


# --- the specification's functions ----------------------------------------------------------------


def of_collect(study, messages):
    return coordinator_with(attempt_of(study), study, messages)


def of_accept(study, place, sent, opened):
    node = node_at(attempt_of(study), study, place)
    take(node, opened_frames(place, opened))


def of_check_statements(study, statements, blamed):
    assert blamed == study["names"]
    total = coordinator_with(attempt_of(study), study, HONEST["firsts"])
    for place, (sent, each) in enumerate(zip(HONEST["seconds"], statements, strict=True)):
        for frame in second_frames(place, sent, each["signature"]):
            total.add(place, frame)
    return total.questions


def of_answer(study, dealt, statements):
    made = signed_attempt(study)
    return asked(made, dealer_of(made, dealt["seeds"]), statements)


def of_check(study, place, opened, signed, seconds, told, shown):
    """All that the coordinator and a node check of these messages."""
    made, honest_run = signed_attempt(study), cases_of(study).HONEST
    fits = [
        digests_of(salt, each["inverses"], each["proof"]) == digests
        for salt, each, digests in zip(opened["salts"], seconds, told["digests"], strict=False)
    ]
    # bytes that nobody changed are those that the dealer heard of
    rows = [
        digests if fit else honest["digests"]
        for fit, digests, honest in zip(
            [*fits, *[False] * len(study["names"])],
            told["digests"],
            honest_run["statements"],
            strict=False,
        )
    ]
    signatures = [
        sign(key, proof_statement(study, number, signed["root"], row), NONCE)
        for number, (key, row) in enumerate(zip(cases.KEYS, rows, strict=True))
    ]
    firsts = first_messages(opened, [*shown, *(each["table"] for each in honest_run["firsts"])])
    sent = [*seconds, *[{}] * (len(study["names"]) - len(seconds))]
    total = coordinator_with(made, study, firsts)
    is_total = opened["total"] == b"".join(frame.payload for frame in total.total())
    is_passed_on = all(map(signs_itself(study, opened, signed, rows), range(len(sent)), sent))
    answer = list(answer_frames(told, signatures))
    if is_total and is_passed_on:
        for number, message in enumerate(sent):
            for frame in second_frames(number, message, signatures[number]):
                total.add(number, frame)
        total.end_exchange()
        for frame in answer:
            total.hear(frame, DEALER)
        # the vectors' attempt is no study's, so their evidence is none
        with without("the evidence proves the lie"):
            total.check_signed(signatures)
    node = node_at(made, study, place)
    take(node, opened_frames(place, opened))
    assert list(node.masked())
    own = node.sign()
    heard = [dict(zip(("root", "digests"), (signed["root"], row), strict=True)) for row in rows]
    heard = [{**each, "signature": s} for each, s in zip(heard, signatures, strict=True)]
    own_root = node.transcript.root(opened["total"])
    if own_root != signed["root"]:
        # what the node signed has its own root, and the dealer hears of it
        heard[place] = {"root": own_root, "digests": own_digests(node, own_root), "signature": own}
        asked(made, dealer_of(made, DEALT["seeds"]), heard)
    for number, message in enumerate(sent):
        if number != place:
            take(node, second_frames(number, message, signatures[number]))
    for frame in answer:
        node.hear(frame, DEALER)
    with without("the evidence proves the lie"):
        node.confirm([own if number == place else each for number, each in enumerate(signatures)])
    return node.shares


def own_digests(node: VerifiedTable, root: bytes) -> list[bytes]:
    statement = node.transcript.said[node.node].statement(root)
    return [statement.inverses, statement.proof]


def signs_itself(study, opened, signed, rows) -> Callable[[int, dict[str, bytes]], bool]:
    """Whether a second message is the one that its node has signed."""

    def is_own(place: int, message: dict[str, bytes]) -> bool:
        if not message:
            return False
        salt = opened["salts"][place]
        return digests_of(salt, message["inverses"], message["proof"]) == rows[place]

    return is_own


def first_messages(opened: dict[str, Any], known: list[bytes]) -> list[dict[str, bytes]]:
    """The nodes' first messages: tables that fit their digests, and what everybody was told."""
    tables = []
    for place, digest in enumerate(opened["tables"]):
        salt = opened["salts"][place]
        tables.append(next(each for each in known if table_digest(salt, each) == digest))
    rows = zip(tables, *(opened[part] for part in ("lists", "salts", "signatures")), strict=True)
    return [dict(zip(("table", "list", "salt", "signature"), row, strict=True)) for row in rows]


def of_release(shares, factor=2):
    """Args: factor: 2 over pairs, 6 over triples."""
    pairs = grid_study(adversary=LYING_NODES)
    triples = grid_study(SPEARMAN, degree=3, adversary=LYING_NODES)
    study = checked({2: pairs, 6: triples}[factor])
    side = protocol_of(study).coordinator(study, verify)
    answers = [
        m.Released(bytes(32), share.to_bytes(8, "little"), size)
        for share, size in zip(shares, cases.STUDY["sizes"], strict=True)
    ]
    return side.replay(answers, Measured())


LIES = {
    "collect": of_collect,
    "accept": of_accept,
    "check_statements": of_check_statements,
    "answer": of_answer,
    "check": of_check,
    "release": of_release,
}


_, test_bad_vectors, test_each_check_is_needed = replay_tests("verified_grid", LIES)
_, test_bad_vectors_of_triples, test_each_check_of_triples_is_needed = replay_tests(
    "verified_triples", {"release": of_release}
)
_, test_bad_vectors_of_bits, test_each_check_of_bits_is_needed = replay_tests(
    "verified_forms", {"collect": of_collect, "check": of_check}
)
