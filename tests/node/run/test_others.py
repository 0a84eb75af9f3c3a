"""umpc.node.run.prepare: whom a run meets, who is late, and what ends with the run.

docs/protocol.md, "Channels made after a study".
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.node.test_prepared_attempts import park, prepared
from tests.support.ledgers import opened
from tests.support.node_talks import run_of
from tests.support.protocols import with_facts
from tests.support.sessions import Run
from tests.support.sites import idle_site, site_of, unused
from tests.support.studies import make_study
from umpc.errors import CertificateError
from umpc.node.records import Records
from umpc.node.run.context import RunContext
from umpc.node.run.earlier import resume
from umpc.node.run.link import PeerLink, peer_stream
from umpc.node.run.prepare import Others
from umpc.node.run.study import run_study
from umpc.node.standing import Chain, KeptChannel, Standing
from umpc.study import messages as m
from umpc.study.parts import Participant

STUDY = make_study(nodes=4)
CERTIFICATES = (b"of node-0", b"of node-2")


def run_with(standing: Standing | None = None, **parts: Any) -> tuple[RunContext, Others]:
    run = run_of(idle_site(standing=standing, **parts), "coordinator", unused, unused)
    run.stream.proposed = STUDY
    return run, Others(run)


def kept(standing: Standing, chain: Chain | None = None) -> KeptChannel:
    made: Any = "an earlier channel"
    return KeptChannel("node-2", bytes(32), made, chain or Chain(0.0), CERTIFICATES, standing.now())


def test_a_step_whose_time_is_up_names_the_peer_whose_message_is_missing():
    """A later look would find nobody: the time limit cancels what waits."""
    late: Any = ("open", 1, (0, 2), 0)

    async def scenario() -> None:
        run, others = run_with()
        run.stream.proposed = STUDY.replaced(seconds_per_step=1)
        others.links.made = {
            number: PeerLink(peer_stream(f"node-{number}")) for number in (1, 2, 3)
        }
        with pytest.raises(TimeoutError):
            async with others.step("evaluate"):
                await others.links.made[2].receive(late)
        assert run.missing == ["node-2"]
        others.end(is_good=False)

    asyncio.run(scenario())


def test_the_peers_that_have_not_connected_are_missing():
    async def scenario() -> None:
        came = asyncio.Event()

        async def dial(study: Any, peer: int, meeting: bytes, standing: Any) -> Any:
            if peer > 1:
                came.set()
                await asyncio.Event().wait()
            return PeerLink(peer_stream(study.nodes[peer].name))

        run, others = run_with(dial=dial)
        side = Run((1, 1, 1, 1)).agree().begin().nodes[0]
        others.links.begin_to_connect(run.site, side, side.study, bytes(32))
        await came.wait()
        await asyncio.sleep(0)
        assert others.links.waited_for() == ["node-2", "node-3"]
        assert others.links.names == ["node-1"]
        others.end(is_good=False)

    asyncio.run(scenario())


def test_a_prepared_run_meets_at_the_addresses_of_the_study_as_it_is_proposed(tmp_path):
    """A study with new addresses is the same study.

    A peer may still know the preparation's links by the attempt's id, so the meeting has another.
    """
    (parked, *rest) = park(prepared(), tmp_path)
    calls: list[tuple[str, bytes]] = []
    all_have_called = asyncio.Event()

    async def dial(study: Any, peer: int, meeting: bytes, standing: Any) -> Any:
        calls.append((study.nodes[peer].address, meeting))
        if len(calls) == 2:
            all_have_called.set()
        return PeerLink(peer_stream(study.nodes[peer].name))

    async def evaluate() -> m.CoordinatorMessage:
        await all_have_called.wait()
        return m.Evaluate(())

    async def hear(message: m.NodeMessage) -> None:
        assert isinstance(message, m.Accepted)

    async def scenario() -> None:
        site = idle_site(dial=dial, permit=lambda *_: None, permit_delta=lambda _: None)
        study = parked.side.study
        nodes = tuple(
            Participant(each.name, f"moved:{number}") for number, each in enumerate(study.nodes)
        )
        run = run_of(site, study.coordinator, evaluate, hear)
        run.stream.proposed = with_facts(study, nodes=nodes)
        assert run.study.hash == study.hash
        others = Others(run)
        order, seconds = await resume(run, others, parked)
        assert order == m.Evaluate(()) and seconds is not None
        assert seconds > 2 * study.seconds_per_step, "the other nodes may still be meeting"
        assert others.bytes_offline == parked.bytes_offline
        others.end(is_good=False)

    asyncio.run(scenario())
    assert [address for address, _ in calls] == ["moved:1", "moved:2"]
    assert len({meeting for _, meeting in calls} | {parked.attempt.id}) == 2
    for each in rest:
        each.close()


def test_a_certificate_that_no_longer_counts_ends_the_standing_with_its_holder(path):
    """A study notices it where its members agree; here, as soon as the node has its own keys."""

    def revoked() -> Any:
        raise CertificateError("the certificate of node-2 was revoked", culprit="node-2")

    async def scenario() -> None:
        standing = Standing()
        standing.keep(kept(standing))
        other = replace(kept(standing), peer="node-1")
        standing.keep(other)
        with opened(path) as ledger:
            records = Records({name: np.arange(3) for name in ("x", "y")}, 3, 0)
            parts = {"load": lambda study: records, "credentials": revoked}
            site = site_of(ledger, standing=standing, **parts)

            async def propose() -> m.CoordinatorMessage:
                return m.Propose(STUDY.encode())

            with pytest.raises(CertificateError):
                await run_study(run_of(site, STUDY.coordinator, propose, unused))
        assert len(standing) == 1
        kind: Any = str
        assert await standing.take("node-1", CERTIFICATES, kind) == other

    asyncio.run(scenario())
