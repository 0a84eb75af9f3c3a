"""umpc.compute.bundles: several tasks in one call, each with its own result and its own failure."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.sessions import Run
from tests.support.spread import evaluated, small_chunks
from umpc.compute import bundles, cluster_tasks
from umpc.compute.bundles import Bundles, RoundsAtCluster
from umpc.compute.cluster_tasks import TaskFailure
from umpc.crypto.rounds import Message
from umpc.dealer import in_order
from umpc.errors import EncodingError, PeerUnavailable
from umpc.mpc.masked.tasks import OwnerTask


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch) -> Iterator[None]:
    # A worker's settings are those of Dask, which may be missing here.
    monkeypatch.setattr(cluster_tasks, "check_worker", lambda version: None)
    with small_chunks():
        yield


def run_of() -> Run:
    return Run((30, 40), "places", edges="300").agree().begin().seed()


def tasks_of(run: Run, party: int) -> list[OwnerTask]:
    run.fields()
    return [
        run.nodes[party].task(chunk, run.material(chunk, party)) for chunk in run.attempt.chunks()
    ]


class Call:
    """A call at the cluster below; its result is known to it alone."""

    def __init__(self, found: Any):
        self.found = found
        self.is_forgotten = False

    def done(self) -> bool:
        return True

    def release(self) -> None:
        self.is_forgotten = True


class ClusterInMemory:
    """A cluster of this process. Whatever goes there and back is pickled, as by Dask.

    Args: calls: at the same time. lost: every state is lost after each call, as a worker that dies
    loses it, and is computed again.
    """

    def __init__(self, calls: int = 1, *, lost: bool = False):
        self.bundles = Bundles(self, calls)
        self.at_once = calls * bundles.TASKS_OF_CALL
        self.calls: list[Call] = []
        self.sizes: list[int] = []
        self.is_gone = False
        self._lost = lost

    def begin(self, task: OwnerTask) -> RoundsAtCluster:
        return RoundsAtCluster(self.bundles, task)

    async def deal(self, task: Any) -> list[list[bytes]]:
        return await self.bundles.deal(task)

    async def submit(self, function: Any, *arguments: Any) -> Call:
        if self.is_gone:
            raise PeerUnavailable("gone")
        first, *rest = pickle.loads(pickle.dumps([self._there(each) for each in arguments]))
        if isinstance(first, cluster_tasks.GivenTasks):
            self.sizes.append(len(first.tasks))
        self.calls.append(Call(function(first, *rest)))
        return self.calls[-1]

    def _there(self, argument: Any) -> Any:
        if not isinstance(argument, Call):
            return argument
        return pickle.loads(pickle.dumps(argument.found)) if self._lost else argument.found

    async def result(self, call: Call) -> Any:
        await asyncio.sleep(0.001)
        found = pickle.loads(pickle.dumps(call.found))
        if isinstance(found, TaskFailure):
            raise found.error
        return found


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("calls", [1, 3])
def test_bundles_say_what_single_tasks_say(calls, lost):
    plain = evaluated(run_of(), None)
    cluster = ClusterInMemory(calls, lost=lost)
    assert evaluated(run_of(), cluster) == plain
    # both nodes' tasks; and the workers have forgotten all states
    assert sum(cluster.sizes) == 2 * plain.chunks > 2 * len(cluster.sizes)
    states = [call for call in cluster.calls if not isinstance(call.found, list)]
    assert len(states) == len(cluster.sizes) and all(call.is_forgotten for call in states)


@pytest.mark.parametrize("calls", [1, 3])
def test_the_dealers_tasks_go_together_too(calls):
    run = run_of()
    plain = [list(run.dealer.deal_one(chunk)) for chunk in run.attempt.chunks()]
    cluster = ClusterInMemory(calls)

    async def dealt() -> list[Any]:
        batches = run.attempt.batches()
        return [each async for each in in_order.dealt_in_order(run.dealer, batches, cluster)]

    assert asyncio.run(dealt()) == plain
    assert sum(cluster.sizes) == len(plain) > len(cluster.sizes)


def test_a_bundle_is_bounded_by_tasks_and_by_bytes(monkeypatch):
    async def sizes(tasks: list[OwnerTask]) -> list[int]:
        cluster = ClusterInMemory()
        await asyncio.gather(*(cluster.begin(task).after(()) for task in tasks))
        return cluster.sizes

    tasks = (3 * tasks_of(run_of(), 0))[: bundles.TASKS_OF_CALL + 3]
    assert asyncio.run(sizes(tasks)) == [bundles.TASKS_OF_CALL, 3]
    monkeypatch.setattr(bundles, "BYTES_OF_CALL", tasks[0].size + tasks[1].size)
    assert asyncio.run(sizes(tasks[:3])) == [2, 1]


def test_a_task_that_fails_fails_alone():
    one, other, *_ = tasks_of(run_of(), 1)
    bad = replace(other, material=other.material[1:])

    async def both() -> list[Any]:
        cluster = ClusterInMemory()
        given = [cluster.begin(task).after(()) for task in (bad, one)]
        found = await asyncio.gather(*given, return_exceptions=True)
        assert cluster.sizes == [2]
        return found

    failure, said = asyncio.run(both())
    assert isinstance(failure, EncodingError) and isinstance(said, Message)


def test_everybody_in_a_bundle_learns_that_the_cluster_is_gone():
    tasks = tasks_of(run_of(), 0)[:3]

    async def gone() -> list[Any]:
        cluster = ClusterInMemory()
        cluster.is_gone = True
        given = [cluster.begin(task).after(()) for task in tasks]
        return await asyncio.gather(*given, return_exceptions=True)

    assert [type(each) for each in asyncio.run(gone())] == 3 * [PeerUnavailable]


def test_a_caller_that_leaves_holds_up_nobody_and_keeps_no_state():
    first, second, *_ = tasks_of(run_of(), 0)

    async def left() -> None:
        cluster = ClusterInMemory()
        given = [cluster.begin(task) for task in (first, second)]
        waiting = [asyncio.create_task(each.after(())) for each in given]
        await asyncio.sleep(0)
        waiting[0].cancel()
        given[0].drop()
        assert isinstance(await waiting[1], Message)
        assert cluster.sizes == [1]
        given[1].drop()
        assert cluster.calls[0].is_forgotten
        # a task is dropped while its call is under way
        late = cluster.begin(first)
        coming = asyncio.create_task(late.after(()))
        while len(cluster.sizes) < 2:
            await asyncio.sleep(0)
        coming.cancel()
        late.drop()
        await asyncio.sleep(0.05)
        assert cluster.calls[2].is_forgotten

    asyncio.run(left())


def test_a_loop_that_ends_leaves_all_room_to_the_next_one():
    first, *others = tasks_of(run_of(), 0)[:4]
    cluster = ClusterInMemory(calls=1)

    async def ends_early() -> None:
        given = [asyncio.create_task(cluster.begin(task).after(())) for task in (first, *others)]
        while not cluster.sizes:
            await asyncio.sleep(0)
        given += [asyncio.create_task(cluster.begin(task).after(())) for task in others]
        await asyncio.sleep(0)

    async def says() -> Any:
        return await cluster.begin(first).after(())

    for _ in range(3):
        cluster.sizes.clear()
        asyncio.run(ends_early())
        assert isinstance(asyncio.run(says()), Message)
