"""Remembered results are found by identity, and failures are made anew."""

from __future__ import annotations

import pytest

from umpc.study.remembered import Remembered


def test_the_very_object_finds_the_result_and_an_equal_one_does_not():
    made = []
    remembered: Remembered[int] = Remembered()

    def make() -> int:
        made.append(1)
        return len(made)

    one, equal = tuple([1, 2]), tuple([1, 2])
    assert one == equal and one is not equal
    assert [remembered.of((one,), make) for _ in range(3)] == [1, 1, 1]
    assert remembered.of((equal,), make) == 2
    assert remembered.of((one,), make, basis="another authority") == 3
    remembered.forget()
    assert remembered.of((one,), make) == 4


def test_failures_are_not_remembered_and_the_oldest_call_is_dropped():
    remembered: Remembered[str] = Remembered(2)
    keys = [(number,) for number in range(3)]

    def fails() -> str:
        raise ValueError("again")

    for _ in range(2):
        with pytest.raises(ValueError, match="again"):
            remembered.of((keys[0],), fails)
    for key in keys:
        assert remembered.of((key,), lambda: "first") == "first"
    assert remembered.of((keys[2],), lambda: "second") == "first"
    assert remembered.of((keys[0],), lambda: "second") == "second"
