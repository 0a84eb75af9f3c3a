"""Lies to a grid of which t + 1 nodes check for all: the coordinator, and one of two verifiers.

Node-0 and node-1 verify, and node-1 lies. Node-2 does not check. It makes no share unless node-0,
too, has signed what fixes the total that node-2 was told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.attacks.test_verified_grid import (
    TABLES,
    begun,
    bent_at,
    is_refused,
    no_share,
)
from tests.support.verified import VerifiedRun, raised
from umpc.crypto.prg import digest
from umpc.errors import UmpcError
from umpc.protocols.grid.lookup_proof import verdict_statement
from umpc.protocols.grid.masked_form import TOTAL
from umpc.protocols.grid.verified import OPENING
from umpc.simulation import AUTHORITY
from umpc.study.messages import Frame
from umpc.testing import lying, without

COORDINATOR = "coordinator"
ALL_SIGNED = "all signed the total"
IS_TABLE = "the total is that of all tables"


def few(label: str = "few") -> VerifiedRun:
    """Three nodes that have counted their records; two of them verify."""
    return begun(label=label, max_colluding=1)


def to_answer(run: VerifiedRun) -> VerifiedRun:
    """All before the verdicts, behind a coordinator that checks nothing."""
    return run.up().down().up().ask().down()


def signed_by(place: int, statement: bytes) -> bytes:
    """A node's signature; a test asks a liar for it, or an honest node for what it does sign."""
    return AUTHORITY.credentials(f"node-{place}").sign(statement)


def verdict(run: VerifiedRun, place: int, root: bytes | None = None) -> bytes:
    """A verifier's signature of a root, by default the coordinator's."""
    told = run.adding.transcript.root(run.total_bytes) if root is None else root
    return signed_by(place, verdict_statement(run.attempt.id, told))


# --- an honest verifier has not signed ------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_a_verifiers_false_table_is_refused_by_the_other_one_and_by_who_does_not_check(name):
    """The coordinator and a verifier lie together. They lack the verdict of the other verifier."""
    run = few()
    TABLES[name](run)
    to_answer(run)
    honest, checks_not = run.tables[0], run.tables[2]
    assert is_refused(honest.sign, IS_TABLE, COORDINATOR)
    signatures = [verdict(run, 1), verdict(run, 1), checks_not.sign()]
    assert is_refused(lambda: checks_not.confirm(signatures), ALL_SIGNED, COORDINATOR)
    no_share(run)
    with without(ALL_SIGNED):
        checks_not.confirm(signatures)
    assert checks_not.shares, "power: without the check the node makes a share"


def test_power_a_verifier_that_checks_nothing_signs_a_false_table():
    run = few()
    TABLES["amplified cell"](run)
    to_answer(run)
    with without(IS_TABLE):
        signatures = run.signatures
    run.tables[2].confirm(signatures)
    assert run.tables[2].shares


Forgery = Callable[[VerifiedRun], bytes]
FORGED: dict[str, Forgery] = {
    "none": lambda run: b"",
    "of another attempt": lambda run: to_answer(few("another attempt")).tables[0].sign(),
    "of another root": lambda run: verdict(run, 0, digest(b"another total")),
    "of the other verifier": lambda run: verdict(run, 1),
    "of a node that does not verify": lambda run: verdict(run, 2),
    "of the own statement": lambda run: run.adding.transcript.said[0].signature.data,
}


@pytest.mark.parametrize("name", FORGED)
def test_a_verdict_that_is_not_the_verifiers_own_names_the_coordinator(name):
    run = to_answer(few())
    _, other, last = run.signatures
    told = [FORGED[name](run), other, last]
    for place in (0, 2):
        confirm = run.tables[place].confirm
        assert is_refused(lambda one=confirm: one(told), ALL_SIGNED, COORDINATOR)
    no_share(run)
    with without(ALL_SIGNED):
        run.tables[2].confirm(told)
    assert run.tables[2].shares, "power: without the check the node makes a share"


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_verdicts_name_the_coordinator(count):
    run = to_answer(few())
    told = run.signatures[:count]
    assert is_refused(lambda: run.tables[2].confirm(told), ALL_SIGNED, COORDINATOR)
    no_share(run)


def test_an_honest_coordinator_names_the_verifier_whose_verdict_is_missing():
    run = to_answer(few())
    first, _, last = run.signatures
    signatures = [first, run.adding.transcript.said[1].signature.data, last]
    assert is_refused(lambda: run.adding.check_signed(signatures), ALL_SIGNED, "node-1")
    with without(ALL_SIGNED):
        run.adding.check_signed(signatures)


# --- another total for the node that does not check -----------------------------------------------


def shifted(place: int, frame: Frame) -> Frame:
    """Node-2 is told another total than the verifiers."""
    return raised(frame) if (place, frame.step) == (2, TOTAL) else frame


def test_another_total_for_a_node_that_does_not_check_has_no_answer_and_no_verdict():
    """Its statement names another root. A dealer that answers nevertheless does not help."""
    run, one_root = few().up().down(shifted).up(), "all statements name one root"
    told = b"".join(shifted(2, frame).payload for frame in run.adding.total())
    other = [run.total_bytes, run.total_bytes, told]
    asked = run.questions(other)
    assert is_refused(lambda: run.ask(asked), one_root, COORDINATOR)
    again = few().up().down(shifted).up()
    with without(one_root), without("the answer is about what was signed"):
        again.ask(asked).down()
        signatures = [verdict(again, 0), verdict(again, 1), again.tables[2].sign()]
    node = again.tables[2]
    assert is_refused(lambda: node.confirm(signatures), ALL_SIGNED, COORDINATOR)
    no_share(again)
    with without(ALL_SIGNED):
        node.confirm(signatures)
    assert node.shares, "power: without the check the share is of another total"


def test_any_changed_byte_for_a_node_that_does_not_check_ends_without_its_share():
    """The signature of d_u is checked at once. A changed salt, d_u or total gives another root."""
    frames = list(few().up().adding.told(2))
    assert {frame.step for frame in frames} == {TOTAL, OPENING}
    for number, frame in enumerate(frames):
        size = len(frame.payload)
        for byte in {0, size // 4, size // 2, size - 1}:
            run = few().up()
            error = _told_with_a_changed_byte(run, number, byte)
            assert error is not None and error.culprit == COORDINATOR, (frame.step, byte)
            no_share(run, (2,))


def _told_with_a_changed_byte(run: VerifiedRun, number: int, byte: int) -> UmpcError | None:
    """How node-2 ends; the verifiers hear the truth, and sign it."""
    try:
        for place in range(3):
            for index, frame in enumerate(run.adding.told(place)):
                payload = bytearray(frame.payload)
                payload[byte % len(payload)] ^= (place, index) == (2, number)
                run.tables[place].take(replace(frame, payload=bytes(payload)))
        told = [verdict(run, 0), verdict(run, 1), b""]
        run.tables[2].confirm(told)
    except UmpcError as error:
        return error
    return None


# --- who is named by an honest coordinator --------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_an_honest_coordinator_names_the_liar_before_a_verifier_has_its_proof(name):
    run, check = few(), "a table is that of its records"
    TABLES[name](run)
    run.up().down().up().ask()
    assert is_refused(run.adding.end_exchange, check, "node-1")
    with without(check):
        run.adding.end_exchange()


@pytest.mark.parametrize("liar", [1, 2])
def test_a_bent_proof_names_its_author_whether_it_verifies_or_not(liar):
    """An honest verifier says so, too, and has the evidence."""
    run, check = few().up().down(), "products of a node"
    run.up(liar=liar, lie=lying("node", make_proof=bent_at(6))).ask().down()
    assert is_refused(run.adding.end_exchange, check, f"node-{liar}")
    assert is_refused(run.tables[0].sign, check, f"node-{liar}")
    no_share(run)
    with without(check), without(IS_TABLE):
        assert run.tables[0].sign()
