"""umpc.node.standing: a prepared attempt runs once.

Its reservation is never forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from tests.support.protocols import run_own_steps
from tests.support.sessions import Run
from tests.support.studies import LOUD, clear_sums
from umpc.crypto.rounds import run_in_memory
from umpc.errors import (
    LedgerError,
    LocalProtocolError,
    PreparationError,
    PreparationLost,
    RemoteProtocolError,
)
from umpc.node.spool import Spool
from umpc.node.standing import PreparedAttempt, PreparedAttempts

HOUR = 3600


def prepared(**changes) -> Run:
    run = Run(counts=(4, 3, 5), epsilon=LOUD, **changes).agree().begin().seed().set_up().toss()
    for chunk in run.attempt.noise_chunks:
        run.finish(chunk)
    return run


def park(run: Run, folder) -> list[PreparedAttempt]:
    """All material on disk, as nodes keep it."""
    chunks = [
        [c for c in run.attempt.chunks_of(node) if not c.noise] for node in range(len(run.nodes))
    ]
    spools = [Spool(folder, "dealer") for _ in run.nodes]
    for chunk in run.attempt.chunks():
        for node, frame in () if chunk.noise else run.dealer.deal_one(chunk):
            spools[node].add(frame.payload)
    rows = zip(run.nodes, chunks, spools, strict=True)
    return [
        PreparedAttempt(session, tuple(run.openings), of, spool, 7, 0)
        for session, of, spool in rows
    ]


def finish(run: Run, parked: list[PreparedAttempt]) -> list[bytes]:
    """The run of what was parked."""
    members = [each.side.accept() for each in parked]
    openings = [each.agree(members) for each in parked]
    assert {each.begin(openings).id for each in parked} == {run.attempt.id}
    run.fields()
    tree_hash = run.attempt.tree_hash()
    for chunk in run.attempt.chunks():
        if not chunk.noise:
            payloads = [parked[node].spool.take() for node in chunk.parties]
            pairs = zip(chunk.parties, payloads, strict=True)
            results, _ = run_in_memory(
                [run.nodes[node].protocol(chunk, payload, tree_hash) for node, payload in pairs]
            )
            for node, result in zip(chunk.parties, results, strict=True):
                run.nodes[node].add(chunk, result)
    for node in run.nodes:
        run_own_steps(node)
    return [node.release().share for node in run.nodes]


@pytest.mark.parametrize(
    "changes",
    [{}, {"noise": "in_mpc"}, {"noise": "in_mpc", "coins": "dealt"}],
    ids=["distributed", "transfers", "dealt"],
)
def test_a_run_from_the_parking_ends_as_any_other(tmp_path, changes):
    """Same randomness, so the very same bytes; and they are the sum."""
    run = prepared(**changes)
    shares = finish(run, park(run, tmp_path))
    usual = prepared(**changes)
    usual.fields()
    for chunk in usual.attempt.chunks():
        if not chunk.noise:
            usual.finish(chunk)
    for node in usual.nodes:
        run_own_steps(node)
    assert shares == [node.release().share for node in usual.nodes]
    ring = run.attempt.ring
    total = ring.decode(sum(int.from_bytes(share, "little") for share in shares))
    assert [total] == clear_sums(run.study, run.tables, run.attempt.hypergraph)


@pytest.fixture
def parked(tmp_path) -> PreparedAttempt:
    made = park(prepared(), tmp_path)
    for other in made[1:]:
        other.close()
    yield made[0]
    made[0].close()


@pytest.mark.parametrize(
    "change", [{"commitment": bytes(32)}, {"public_key": bytes(32)}, {"records": 4}]
)
def test_another_member_ends_it_by_name(parked, change):
    """The opening was seen before, so a node with a new commitment could choose the joint seed."""
    members = list(parked.attempt.members)
    members[1] = replace(members[1], **change)
    with pytest.raises(PreparationLost, match=r"node-1 no longer has.*prepare it again") as caught:
        parked.agree(members)
    assert (caught.value.culprit, caught.value.step) == ("node-1", "agree")


def test_a_coordinator_that_alters_something_is_blamed(parked):
    first, *others = parked.attempt.members
    for members in ([replace(first, records=9), *others], [first], [first, others[1], others[0]]):
        with pytest.raises(RemoteProtocolError, match="entry") as caught:
            parked.agree(members)
        assert caught.value.culprit == "coordinator"
    for openings in (parked.openings[:2], [*parked.openings[:2], bytes(32)]):
        with pytest.raises(RemoteProtocolError, match="openings"):
            parked.begin(openings)


# --- the store --------------------------------------------------------------------------------


@dataclass
class Timer:
    """A call that an event loop does later."""

    at: float
    act: Callable[[], None]
    dead: bool = False

    def cancel(self) -> None:
        self.dead = True


class Clock:
    """Time, timers, and a ledger that prepares and cancels."""

    def __init__(self, most: int = 2):
        self.now, self.prepared, self.cancelled, self.timers = 0.0, {}, [], []
        self.parking = PreparedAttempts(self, most, HOUR, lambda: self.now, self.later)

    def prepare(self, study: bytes, until: float) -> None:
        self.prepared[study] = until

    def cancel(self, study: bytes) -> None:
        self.cancelled.append(study)

    def reservation(self, study: bytes):
        return self.prepared.get(study)

    def later(self, delay, act):
        self.timers.append(Timer(self.now + delay, act))
        return self.timers[-1]

    def pass_time(self, seconds: float, timers: bool = True) -> None:
        self.now += seconds
        for timer in self.timers if timers else ():
            if not timer.dead and timer.at <= self.now:
                timer.act()


@pytest.fixture
def entry(tmp_path):
    """Make an attempt at a study of this name, with material on disk."""
    spools = []

    def made(name: str) -> PreparedAttempt:
        spools.append(Spool(tmp_path, "dealer"))
        spools[-1].add(b"material")
        return PreparedAttempt(Run(name=name).nodes[0], (), [], spools[-1], 0, Fraction(0))

    yield made
    for spool in spools:
        spool.close()


def check_gone(parked: PreparedAttempt) -> None:
    with pytest.raises(LocalProtocolError, match="the prepared material is gone"):
        parked.spool.take()


@pytest.mark.parametrize("timers", [True, False])
def test_its_time_is_up_also_where_timers_slept(entry, timers):
    clock, a = Clock(), entry("a")
    clock.parking.put(a)
    clock.pass_time(HOUR - 1)
    assert clock.cancelled == []
    clock.pass_time(1, timers)
    assert clock.parking.take(a.study_hash) is None
    assert (clock.cancelled, len(clock.parking)) == ([a.study_hash], 0)
    check_gone(a)


def test_the_ledger_knows_until_when_it_waits_and_a_disk_that_refuses_ends_it(entry):
    clock, (a, b, c) = Clock(), map(entry, "abc")
    clock.parking.put(a)
    clock.pass_time(HOUR / 2)
    clock.parking.put(b)
    assert clock.prepared == {a.study_hash: HOUR, b.study_hash: 1.5 * HOUR}
    assert clock.parking.take(b.study_hash) is b and b.spool.take() == b"material"

    def fails(study, until):
        raise LedgerError("no space left")

    clock.prepare = fails
    with pytest.raises(LedgerError, match="no space left"):
        clock.parking.put(c)
    assert clock.parking.take(c.study_hash) is None and not clock.parking.holds(c.study_hash)


def test_a_ledger_that_fails_does_not_keep_the_material(entry, caplog):
    clock, a = Clock(), entry("a")
    clock.parking.put(a)

    def fails(study):
        raise LedgerError("closed")

    clock.cancel = fails
    caplog.set_level(logging.WARNING)
    clock.parking.close()
    assert "until the next start" in caplog.text
    check_gone(a)


def test_what_an_administrator_refused_makes_room(entry):
    clock, (a, b, c) = Clock(), map(entry, "abc")
    clock.parking.put(a)
    clock.parking.put(b)
    with pytest.raises(PreparationError):
        clock.parking.check_room()
    del clock.prepared[a.study_hash]  # `umpc approve reject`
    clock.parking.put(c)
    assert not clock.parking.holds(a.study_hash) and clock.parking.holds(b.study_hash)
