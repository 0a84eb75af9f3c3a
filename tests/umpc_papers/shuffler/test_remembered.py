"""umpc_papers.shuffler.server: which deliveries it remembers, and for how many attempts."""

from __future__ import annotations

import asyncio
import os

from tests.support.protocols import with_facts
from tests.support.shuffled import shuffled_study
from umpc.errors import StudyAborted
from umpc.simulation import AUTHORITY
from umpc.study.parts import Participant
from umpc.transport.authority import Authority
from umpc.transport.identity import load_identity
from umpc_papers.shuffler import server as shuffler
from umpc_papers.shuffler.server import ShufflerServer


def test_attempts_that_a_coordinator_made_up_leave_nothing_and_real_ones_a_bounded_memory(
    tmp_path, limit
):
    Authority.create(tmp_path / "authority").issue("shuffler-2", "shuffler", tmp_path / "own")
    identity = load_identity(tmp_path / "own")
    limit(shuffler, REMEMBERED=3)
    both = tuple(Participant(name, "127.0.0.1:1") for name in ("shuffler-1", "shuffler-2"))
    study = with_facts(shuffled_study(2), shufflers=both)
    first, *others = [bytes([number]) * 32 for number in range(5)]

    async def scenario() -> list[bytes]:
        here = ShufflerServer(identity, lambda error: None, AUTHORITY.verify)

        def run_of(attempt: bytes, *, delivers: bool) -> dict[int, bytes]:
            run = here.run_of(study, attempt)
            before = dict(run.seen)
            if delivers:
                run.seen[0] = b"digest"
            run.fail(StudyAborted("over"))
            return before

        for _ in range(10):
            run_of(os.urandom(32), delivers=False)
        assert not here.remembered
        for attempt in (first, *others[:2]):
            run_of(attempt, delivers=True)
        assert run_of(first, delivers=False) == {0: b"digest"}, "a later run knows what came"
        for attempt in others[2:]:
            run_of(attempt, delivers=True)
        return list(here.remembered)

    assert asyncio.run(scenario()) == [first, *others[2:]]
