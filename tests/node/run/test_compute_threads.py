"""Runs have threads of their own while there are few, and share them in order when many."""

from __future__ import annotations

import threading

from umpc.node.run.context import ComputeThreads


def test_threads_are_used_again_and_are_no_more_than_the_limit():
    threads = ComputeThreads(2)
    first, second, third = (threads.take() for _ in range(3))
    assert first is not second and third in (first, second)
    other = second if third is first else first
    threads.give_back(other)
    other.submit(int).result()
    assert threads.take() is other
    threads.give_back(third)
    third.submit(int).result()
    assert threads.take() in (third, other)  # it still has a run, and so has the other one
    assert threads.take() in (third, other)
    for each in (first, second):
        each.shutdown()


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
