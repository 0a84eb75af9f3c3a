"""umpc.node.attempts.attempt_runner: signatures come before data, and who is late is named."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.peers import PeerLink, peer_stream
from umpc.node.attempts.run_material import ComputeThreads
from umpc.study import messages as m


@pytest.mark.parametrize("good", [True, False])
def test_records_are_used_only_after_everybodys_signature_of_the_attempt(good):
    done: list[str] = []

    def check_prepared(signatures: tuple[bytes, ...]) -> None:
        done.append("checked")
        if signatures != (b"good",):
            raise RemoteProtocolError("not signed", culprit="coordinator", step="evaluate")

    def own_steps() -> Iterator[None]:
        done.append("used")
        yield

    async def scenario() -> None:
        runner = AttemptRunner(site, tell=site)
        runner._side = side
        try:
            await runner.evaluate((b"good",) if good else (b"bad",))
        finally:
            runner.close()

    site: Any = None
    study = SimpleNamespace(seconds_per_step=60)
    side: Any = SimpleNamespace(
        check_prepared=check_prepared, own_steps=own_steps, mesh=None, study=study
    )
    if good:
        asyncio.run(scenario())
    else:
        with pytest.raises(RemoteProtocolError):
            asyncio.run(scenario())
    assert done == (["checked", "used"] if good else ["checked"])


def missing_after(runner: AttemptRunner, late: Any) -> list[str]:
    """The names that a runner notes when the time of a step is up."""

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await late(runner)
        runner.close()

    asyncio.run(scenario())
    return runner.missing


def test_a_step_whose_time_is_up_names_the_peer_whose_message_is_missing():
    """The time limit cancels what waits, so a later look would find nobody."""
    here = PeerLink(peer_stream("node-2"))
    late = PeerLink(peer_stream("node-3"))
    key: Any = ("open", 1, (0, 2), 0)
    rounds = SimpleNamespace(
        begin_step=lambda step: None, exchange_fields=lambda peer: late.receive(key)
    )
    side: Any = SimpleNamespace(
        check_prepared=lambda signatures: None,
        mesh=SimpleNamespace(peers=[2]),
        study=SimpleNamespace(seconds_per_step=0.05),
    )
    nobody: Any = SimpleNamespace(channels=None)

    async def evaluate(runner: AttemptRunner) -> None:
        runner._side = side
        runner._rounds = rounds  # type: ignore[assignment]
        runner.links.made = {1: here, 2: late}
        await runner.evaluate(())

    assert missing_after(AttemptRunner(nobody, tell=nobody), evaluate) == ["node-3"]


def test_a_step_whose_time_is_up_names_the_peer_that_did_not_connect():
    async def never(study: Any, peer: int, meeting: bytes) -> Any:
        if peer == 2:
            await asyncio.Event().wait()
        return PeerLink(peer_stream("node-2"))

    nodes = [SimpleNamespace(name=f"node-{number}") for number in (1, 2, 3)]
    study: Any = SimpleNamespace(seconds_per_step=0.05, nodes=nodes)
    program = SimpleNamespace(window=None)
    attempt = SimpleNamespace(id=bytes(32), program=program, size=3)
    mesh = SimpleNamespace(peers=[1, 2], index=0, attempt=attempt)
    prepared: Any = SimpleNamespace(
        side=SimpleNamespace(mesh=mesh), chunks=[], spool=None, bytes_offline=0, chains={}
    )
    site: Any = SimpleNamespace(dial=never, channels=None)
    missing = missing_after(
        AttemptRunner(site, tell=site), lambda runner: runner.resume(prepared, study)
    )
    assert missing == ["node-3"]


@pytest.mark.parametrize("early", [True, False])
def test_a_node_tosses_coins_while_the_dealer_deals_where_they_need_no_seed(early):
    """The dealer here sends its seed only after the toss; a node that waits for it would hang."""
    done: list[str] = []
    tossed = asyncio.Event()

    class Dealer:
        is_awaited, bytes_received = False, 0

        async def seed(self) -> bytes:
            if early:
                await tossed.wait()
            return bytes(32)

        async def pump(self) -> None: ...

        async def prefetched(self) -> None: ...

        def on_violation(self, alarm: Any) -> None: ...

        def close(self) -> None: ...

    def toss() -> None:
        done.append("tossed")
        tossed.set()

    async def open_material(*_: Any) -> Dealer:
        return Dealer()

    async def tell(done: int, total: int) -> None: ...

    attempt = SimpleNamespace(
        id=bytes(32),
        study=SimpleNamespace(seconds_per_step=20),
        chunks_of=lambda index: [],
        tree_hash=lambda: None,
        needs_dealer=True,
        makes_ahead=False,
        size=3,
        toss_plan=None,
        program=SimpleNamespace(window=None, chunks_in_flight=1),
        members=[SimpleNamespace(name="node-1")],
    )
    mesh: Any = SimpleNamespace(
        attempt=attempt,
        index=0,
        peers=(),
        tosses_early=early,
        toss=toss,
        receive_seed=lambda seed: done.append("dealt"),
    )
    side: Any = SimpleNamespace(
        study=SimpleNamespace(seconds_per_step=20, shufflers=()), mesh=mesh, signatures=()
    )

    site: Any = SimpleNamespace(open_material=open_material, workers=None, channels=None)

    async def scenario() -> None:
        runner = AttemptRunner(site, tell)
        try:
            await runner.ready(side, ())
        finally:
            runner.close()

    asyncio.run(scenario())
    assert done == (["tossed", "dealt"] if early else ["dealt", "tossed"])


def test_a_thread_is_used_by_one_run_at_a_time_and_by_the_next_one_again():
    threads = ComputeThreads()
    first, second = threads.take(), threads.take()
    begun, go_on = threading.Event(), threading.Event()

    def compute() -> None:
        begun.set()
        go_on.wait()

    busy = first.submit(compute)
    begun.wait()
    threads.give_back(first)  # while it still computes for the run that ended
    threads.give_back(second)
    second.submit(lambda: None).result()
    assert threads.take() is second
    third = threads.take()
    assert third is not first
    go_on.set()
    busy.result()
    first.submit(lambda: None).result()
    assert threads.take() is first
    for thread in (first, second, third):
        thread.shutdown()


def test_a_preparation_leaves_the_next_channel_to_its_run():
    """It would hold up the run, which may come at once."""
    made: list[str] = []

    class Channels:
        def now(self) -> float:
            return 0.0

        def make(self, peers: Any, making: Any) -> None:
            making.close()
            made.append("channel")

    class Mesh:
        index, peers, channel_peers = 0, (1,), (1,)
        members = tuple(SimpleNamespace(name=f"node-{number}") for number in range(2))
        attempt = SimpleNamespace(members=members, id=bytes(32), toss_plan=None)

        def channel(self, peer: int) -> Any: ...

        def take_up(self, peer: int, channel: Any) -> None: ...

    site: Any = SimpleNamespace(name="node-0", channels=Channels())
    for is_parked in (True, False):

        async def scenario(is_parked: bool = is_parked) -> None:
            runner = AttemptRunner(site, tell=site)
            runner._side = cast(Any, SimpleNamespace(mesh=Mesh()))
            runner.links.made[1] = PeerLink(peer_stream("node-1"))
            runner._has_met = runner.ended_well = True
            runner._is_parked = is_parked
            runner.end()

        asyncio.run(scenario())
        assert made == ([] if is_parked else ["channel"])


@pytest.mark.parametrize("waits", [False, True])
def test_all_that_a_run_has_ends_with_it_except_what_waits_prepared(waits):
    ended: list[str] = []

    def part(name: str) -> Any:
        return SimpleNamespace(peer=name, close=lambda **_: ended.append(name))

    site: Any = SimpleNamespace(channels=SimpleNamespace(drop=ended.extend))
    runner = AttemptRunner(site, tell=site)
    runner.material.spool = part("material on disk")
    runner.material.reader = part("dealer")
    runner.links.made = {1: part("node-1")}
    runner.delivery._streams = part("shufflers")
    runner._ahead = SimpleNamespace(cancel=lambda: ended.append("ahead"))  # type: ignore[assignment]
    runner._is_parked = waits
    runner.close()
    due = ["ahead", "dealer", "node-1", "node-1", "shufflers"]
    assert sorted(ended) == sorted([*due, *(() if waits else ["material on disk"])])
    assert ended.count("node-1") == 2, "the link, and the channel: the run did not end well"
    with pytest.raises(LocalProtocolError):
        asyncio.run(runner.compute.in_thread(sum, ()))


def test_nothing_is_charged_after_a_violation_or_without_the_shufflers():
    site: Any = SimpleNamespace()
    delivery: Any = object.__new__(m.Delivery)
    runner = AttemptRunner(site, tell=site)
    with pytest.raises(LocalProtocolError, match="not reached"):
        runner.check_delivery(delivery)
    runner.guard.note(RemoteProtocolError("a replayed frame", culprit="node-2"))
    released: Any = object.__new__(m.Released)
    with pytest.raises(RemoteProtocolError, match="replayed"):
        runner.check_delivery(released)
