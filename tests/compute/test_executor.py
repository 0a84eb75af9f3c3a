"""umpc.compute: every place computes the same bytes, and a chunk's masks serve once."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.sessions import Run
from tests.support.spread import Dying, evaluated, small_chunks
from umpc.compute.executor import CoreThreads, Executor
from umpc.crypto.rounds import Finished, Message
from umpc.dealer.server import dealt_in_order
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.masked.tasks import OwnerBatch, TaskRounds


@pytest.fixture(autouse=True)
def _small_chunks() -> Iterator[None]:
    with small_chunks():
        yield


def run_of(**changes) -> Run:
    return Run((30, 40), "places", edges="300", **changes).agree().begin().seed()


def tasks(run: Run) -> list[OwnerBatch]:
    """The tasks of both owners of the first chunk."""
    run.fields()
    chunk = next(run.attempt.chunks())
    return [run.nodes[n].batch([chunk], [run.material(chunk, n)]) for n in chunk.parties]


def opened(one: OwnerBatch, other: OwnerBatch) -> tuple[TaskRounds, tuple[tuple[Message]]]:
    """The first owner's rounds, and the other's first message, of the only chunk."""
    rounds = TaskRounds(one)
    (message,) = TaskRounds(other).after(())
    assert isinstance(message, Message)
    return rounds, ((message,),)


def test_every_place_sends_the_same_messages_once_and_ends_with_the_same_shares():
    plain = evaluated(run_of(), None)
    assert plain.chunks > 4 and len(plain.sent) == 2 * plain.chunks
    for place in (Executor(), CoreThreads(2), Dying()):
        assert evaluated(run_of(), place) == plain


def test_a_task_that_is_computed_again_elsewhere_says_the_same():
    one, other = tasks(run_of())
    rounds, theirs = opened(one, other)
    first, last = rounds.after(()), rounds.after((theirs,))
    assert isinstance(last, Finished)
    for copy in (pickle.loads(pickle.dumps(rounds)), TaskRounds(pickle.loads(pickle.dumps(one)))):
        assert copy.after((theirs,)) == last and copy.after(()) == first


def test_a_round_that_is_answered_twice_in_two_ways_is_refused():
    one, other = tasks(run_of())
    rounds, theirs = opened(one, other)
    rounds.after((theirs,))
    ((told,),) = theirs
    lie = replace(told, payload=bytes(len(told.payload)))
    assert lie != told
    with pytest.raises(LocalProtocolError, match="serve once"):
        rounds.after((((lie,),),))
    with pytest.raises(LocalProtocolError, match="once"):
        tasks_twice(run_of())


def tasks_twice(run: Run) -> None:
    tasks(run)
    chunk = next(run.attempt.chunks())
    run.nodes[0].batch([chunk], [run.material(chunk, 0)])


def test_failures_keep_their_class_and_culprit_at_every_place():
    """A bad message names its sender, bad material is an EncodingError; both survive a pickle."""
    one, other = tasks(run_of())
    rounds, theirs = opened(one, other)
    with pytest.raises(EncodingError):
        TaskRounds(replace(other, materials=[other.materials[0][1:]]))
    with pytest.raises(RemoteProtocolError) as caught:
        rounds.after((((replace(theirs[0][0], payload=b""),),),))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.culprit, again.message) == ("node-1", caught.value.message)


def test_nothing_secret_is_in_any_text_about_a_task():
    run = run_of()
    one, other = tasks(run)
    chunk = next(run.attempt.chunks())
    deal = run.dealer.task(chunk)
    for each in (one, TaskRounds(other), deal):
        assert repr(each).endswith("<redacted>)") and len(repr(each)) < 60


def test_material_keeps_the_order_of_chunks_whatever_is_computed_first():
    run = run_of()
    plain = [list(run.dealer.deal_one(chunk)) for chunk in run.attempt.chunks()]

    class Backwards(Executor):
        """The last of the chunks that are begun is ready first."""

        at_once = 3
        waiting = 0

        async def run(self, function, *arguments):
            self.waiting += 1
            for _ in range(10 - self.waiting % 10):
                await asyncio.sleep(0)
            return function(*arguments)

    async def dealt(workers) -> list:
        batches = run.attempt.batches()
        material = dealt_in_order(run.dealer, batches, workers)
        return [each async for each in material]

    assert len(plain) > 4
    for workers in (None, Executor(), Backwards()):
        assert asyncio.run(dealt(workers)) == plain
    assert asyncio.run(dealt(None)) == plain


def test_a_side_that_has_rounds_of_its_own_gives_no_task():
    run = run_of()
    run.fields()
    chunk = next(run.attempt.chunks())

    class Liar(type(run.nodes[0])):
        def protocol(self, *arguments):
            return super().protocol(*arguments)

    run.nodes[0].__class__ = Liar
    assert run.nodes[0].batch([chunk], [b""]) is None
    assert run.nodes[1].batch([chunk], [run.material(chunk, 1)]) is not None
