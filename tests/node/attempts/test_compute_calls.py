"""The calls of one turn of the event loop go to the compute thread together, and in order."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from umpc.node.attempts import compute_calls
from umpc.node.attempts.compute_calls import ComputeCalls


class CountingThread(ThreadPoolExecutor):
    """An executor with one thread that counts what is handed to it."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.handed_over = 0

    def submit(self, *arguments, **named):
        self.handed_over += 1
        return super().submit(*arguments, **named)


def run(scenario):
    async def main():
        with CountingThread() as thread:
            return await scenario(thread, ComputeCalls(thread))

    return asyncio.run(main())


def test_the_calls_of_one_turn_are_handed_over_at_once_and_computed_in_order():
    async def scenario(thread, calls):
        order = []
        results = await asyncio.gather(
            *(calls.run(lambda n=n: order.append(n) or n) for n in "abc")
        )
        assert results == order == ["a", "b", "c"]
        assert thread.handed_over == 1
        assert await calls.run(lambda: "d") == "d"
        assert thread.handed_over == 2

    run(scenario)


def test_an_error_goes_to_its_own_caller_and_the_others_get_their_results():
    async def scenario(thread, calls):
        first, second, third = await asyncio.gather(
            calls.run(lambda: 1),
            calls.run(lambda: {}["missing"]),
            calls.run(lambda: 3),
            return_exceptions=True,
        )
        assert (first, third) == (1, 3) and isinstance(second, KeyError)

    run(scenario)


def test_a_cancelled_call_is_left_out_and_a_closed_run_computes_nothing_more():
    async def scenario(thread, calls):
        computed = []
        kept = asyncio.create_task(calls.run(lambda: computed.append("kept")))
        dropped = asyncio.create_task(calls.run(lambda: computed.append("dropped")))
        await asyncio.sleep(0)
        dropped.cancel()
        await kept
        late = asyncio.create_task(calls.run(lambda: computed.append("late")))
        await asyncio.sleep(0)
        calls.close()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert computed == ["kept"] and thread.handed_over == 1

    run(scenario)


def test_a_long_computation_does_not_hold_up_the_results_before_it(monkeypatch):
    monkeypatch.setattr(compute_calls, "TELL_SECONDS", 0.0)

    async def scenario(thread, calls):
        told = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait_in_thread() -> bool:
            return asyncio.run_coroutine_threadsafe(told.wait(), loop).result(20)

        first = asyncio.create_task(calls.run(lambda: 1))
        first.add_done_callback(lambda _: told.set())
        second = asyncio.create_task(calls.run(wait_in_thread))
        assert await second is True and first.result() == 1
        assert thread.handed_over == 1

    run(scenario)


def test_a_computation_whose_caller_was_cancelled_still_counts_as_one():
    async def scenario(thread, calls):
        begun, may_end = Event(), Event()

        def compute():
            begun.set()
            assert may_end.wait(60)

        assert not calls.is_busy
        caller = asyncio.create_task(calls.run(compute))
        await asyncio.to_thread(begun.wait, 60)
        caller.cancel()
        await asyncio.wait([caller])
        assert calls.is_busy
        may_end.set()
        assert await calls.run(lambda: 1) == 1
        assert not calls.is_busy

    run(scenario)


def test_after_one_long_computation_the_thread_counts_as_idle_at_once(monkeypatch):
    monkeypatch.setattr(compute_calls, "TELL_SECONDS", 0.0)

    async def scenario(thread, calls):
        assert await calls.run(lambda: "long") == "long"
        assert not calls.is_busy, "the caller may compute briefly in place"

    run(scenario)
