"""The check of people's total: umpc replays the vectors, and what a liar may know is counted."""

from __future__ import annotations

import asyncio
from itertools import chain, product, repeat

import numpy as np
import pytest

from spec import field as plain
from spec import people_verified as spec
from spec.cases.people_verified import ALPHA, HONEST, RUN, STUDY, TABLE
from spec.field import P, small_field
from spec.joint_seed import commit, point, sign
from tests.spec.replaying import replay_tests
from tests.spec.studies import study_of
from tests.spec.test_joint_seed import verify
from tests.support.fields import number_field
from tests.support.grid import grid_study
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import Credentials
from umpc.dealer.server import AskedAttempt
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.masked_form import masked_forms
from umpc.protocols.people.checked import CheckedTotal, PeopleDealing, challenge
from umpc.protocols.people.node import CheckedTable
from umpc.protocols.people.protocol import PeopleTotal
from umpc.study.attempt import sign_member
from umpc.study.messages import Frame
from umpc.study.sizes import Member
from umpc.transport.tls import Peer

HASH = bytes(32)
DEALER_KEY = 2**140 + 1
DEALER = b"dealer" + point(DEALER_KEY)


class OfVectors(GridAttempt):
    """An attempt with the vectors' identity."""

    id = b""


def owns_of(signing=RUN["signing"]) -> list[Credentials]:
    """Both aggregators' credentials. Args: signing: a key, and the nonces in their order."""
    found = []
    for name, key, (secret, *nonces) in zip(STUDY["names"], STUDY["keys"], signing, strict=True):
        drawn = chain(nonces, repeat(nonces[-1]))
        found.append(
            Credentials(
                name, name.encode() + key, lambda t, k=secret, d=drawn: sign(k, t, next(d)), verify
            )
        )
    return found


def attempt_of(study) -> GridAttempt:
    """The attempt of the vectors, whose members have signed."""
    fields = number_field("x", "0", "2"), number_field("y", "0", "3")
    made_of = study_of(HASH, ["node-0", "node-1"], grid_study(nodes=2, fields=fields))
    members = [
        sign_member(HASH, Member(own.name, 6, commit(HASH, own.name, bytes(32)), bytes(32)), own)
        for own in owns_of()
    ]
    made = OfVectors(made_of, members, [bytes(32)] * 2, PRIME, grid_of(made_of))
    made.id = study["attempt"]
    return made


def dealing_of(made, alpha, seeds, coin) -> PeopleDealing:
    drawn = chain(seeds, repeat(bytes(32), 1), repeat(coin))
    dealing = PeopleDealing(made, lambda size: next(drawn))
    dealing.alpha = alpha
    list(dealing.deal_one(next(made.chunks())))
    return dealing


def asked(made, dealing, questions) -> Frame:
    """The answer, through the door of the dealer's server."""

    async def answer():
        one = AskedAttempt(made, dealing, verify, lambda text: sign(DEALER_KEY, text, 2**203))
        return await one.answer(Peer("coordinator", "coordinator"), questions)

    (frame,) = asyncio.run(answer())
    return frame


def answer(study, alpha, seeds, questions, coin):
    made = attempt_of(study)
    rows = [b"".join(each) for each in questions]
    return asked(made, dealing_of(made, alpha, seeds, coin), rows).payload[:-64]


def run(study, alpha, seeds, shares, signing, coin, salts, added):
    made = attempt_of(study)
    dealing = dealing_of(made, alpha, seeds, coin)
    total = PeopleTotal(made, study["keys"], verify)
    (form,) = masked_forms(made.grid, made.ring)
    nodes, masked = [], []
    for place, own in enumerate(owns_of(signing)):
        h, tags = (np.array(row, dtype=np.uint64) for row in shares[place])
        seed, salt = dealing.seed_frame(place).payload, salts[place]
        node = CheckedTable(made, place, seed, own, study["keys"], tags, lambda size, s=salt: s)
        node.put(h, [form.own(h)])
        node.deal([0])
        (frame,) = node.masked()
        masked.append(frame)
        nodes.append(node)
    sent = [np.frombuffer(frame.payload, dtype="<u8").tolist() for frame in masked]
    # the coordinator's vector, in the first one's table
    first = plain.encode(plain.masked(sent[0], added))
    for place, frame in enumerate(masked):
        payload = frame.payload if place else first
        total.add(place, Frame(frame.step, (), 0, frame.count, 64, payload))
    parts = []
    for exchange in range(3):
        if exchange:
            parts.append([list(node.masked()) for node in nodes])
            for place, frames in enumerate(parts[-1]):
                assert total.add(place, *frames)
        total.end_exchange()
        if exchange == 1:
            said = asked(made, dealing, total.questions)
            for hearing in (total, *nodes):
                assert hearing.hear(said, DEALER)
        for place, node in enumerate(nodes):
            for frame in total.told(place):
                node.take(frame)
    openings = [node.sign() for node in nodes]
    for node in nodes:
        node.confirm(openings)
    total.check_signed(openings)
    assert all(node.shares for node in nodes)
    statements, commitments = ([each.payload for (each,) in part] for part in parts)
    return {
        "masked": sent,
        "total": b"".join(frame.payload for frame in total.total()),
        "signatures": statements,
        "answer": said.payload[:-64],
        "commitments": [[each[:32], each[32:]] for each in commitments],
        "openings": openings,
    }


def said_of(study, of_total=bytes(32), told=b"") -> CheckedTotal:
    """A transcript up to the answer."""
    said = CheckedTotal(attempt_of(study), study["keys"])
    said.total, said.answer.data = spec.total_text(study, of_total), told + bytes(64)
    return said


def check_commitments(study, commitments):
    said = said_of(study)
    for part, each in zip(said.commitments, commitments, strict=True):
        part.data = b"".join(each)
    said.check_commitments(study["relay"])


def check(study, of_total, told, committed, openings):
    said = said_of(study, of_total, told)
    for part, each in zip(said.commitments, committed, strict=True):
        part.data = each + bytes(64)
    said.check(openings)


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "people_verified",
    {
        "run": run,
        "answer": answer,
        "challenge": lambda study, coin: challenge(study["attempt"], coin, study["cells"]).tolist(),
        "check": check,
        "check_commitments": check_commitments,
    },
)


def test_the_vectors_are_of_the_histogram_and_its_tags():
    (h, tags), (other, others) = RUN["shares"]
    assert [(a + b) % P for a, b in zip(h, other, strict=True)] == TABLE
    assert [(a + b) % P for a, b in zip(tags, others, strict=True)] == [
        ALPHA * each % P for each in TABLE
    ]
    zs = [plain.decode(each[48:], 2, "", None) for each in HONEST["openings"]]
    assert [(a + b) % P for a, b in zip(*zs, strict=True)] == [0, 0] != zs[0]


# --- in a field of 7 elements, by counting --------------------------------------------------------

SMALL, NON = 7, 3


def passes(alpha: int, chi: list, e: list[int], lie: tuple[int, int]) -> bool:
    """Whether Σ z = 0. Args: e: what the total is off by. lie: what the liar adds to its z."""
    off = plain.multiply((alpha, 0), plain.dot(plain.lift(e), chi))
    return plain.add(plain.subtract(plain.ZERO, off), lie) == plain.ZERO


@pytest.mark.parametrize("e", [[1, 0], [0, 3], [2, 5]])
def test_a_false_total_passes_with_the_probability_that_the_document_says(e):
    """Over all χ and α, whatever a liar that knows χ adds to its z: at most 1/p + 1/p²."""
    with small_field(SMALL, NON):
        elements = list(product(range(SMALL), repeat=2))
        best = 0
        for chi in product(elements, repeat=2):
            best += max(
                sum(passes(alpha, list(chi), e, lie) for alpha in range(SMALL)) for lie in elements
            )
        share = best / (len(elements) ** 2 * SMALL)
    assert 1 / SMALL < share <= 1 / SMALL + 1 / SMALL**2


def test_a_check_that_fails_shows_alpha_and_a_second_one_would_pass():
    """So a survey that opened z opens it again only if the check passed."""
    with small_field(SMALL, NON):
        e, alpha = [1, 0], 5
        first, second = [(2, 3), (1, 1)], [(4, 1), (0, 6)]
        shown = plain.multiply((alpha, 0), plain.dot(plain.lift(e), first))
        found = plain.multiply(shown, plain.inverse(plain.dot(plain.lift(e), first)))
        assert found == (alpha, 0)
        lie = plain.multiply(found, plain.dot(plain.lift(e), second))
        assert passes(alpha, second, e, lie)
