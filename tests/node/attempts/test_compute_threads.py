"""Runs have threads of their own while there are few, and share them in order when many."""

from __future__ import annotations

from umpc.node.attempts.run_material import ComputeThreads


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
