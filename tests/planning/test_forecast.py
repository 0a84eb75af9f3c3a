"""umpc.api.progress and umpc.api.progress: what a run that is about to begin will take."""

from __future__ import annotations

import pytest

from tests.support.studies import KENDALL, make_study
from umpc.api.progress import Forecast, ProgressShow, forecast, in_words
from umpc.planning.prediction import attempt_over
from umpc.planning.seconds import Machine, predict_memory
from umpc.protocols.registry import protocol_of
from umpc.testing import lying


def attempt_of(records: str, edges: str):
    return attempt_over(make_study(KENDALL, 2, edges=edges), records)


def test_a_short_run_is_not_announced_and_has_no_trial():
    with lying("process", seconds_of=lambda *_: pytest.fail("there was a trial")):
        assert forecast(attempt_of("300,200", "2n")) is None


def test_a_long_run_is_announced_with_the_costs_of_the_plan():
    attempt = attempt_of("3000,2000", "all")
    with lying("process", measure_machine=lambda *_: Machine(1e-6, 1e-6)):
        assert forecast(attempt) is None or forecast(attempt).seconds > 60
    with lying("process", measure_machine=lambda *_: Machine(1e-4, 1e-4)):
        found, cost = forecast(attempt), protocol_of(attempt.study).cost(attempt)
    assert found.seconds > 6_000_000 * 2e-4 / 2
    assert found.bytes == cost.bytes_online + cost.bytes_offline
    assert found.memory == predict_memory(attempt, cost)


def test_progress_says_what_a_run_takes_and_the_time_left(capsys):
    clock = iter([0.0, 10.0, 10.0, 10.0, 500.0, 500.0, 500.0]).__next__
    with ProgressShow(clock) as show:
        show.announce(Forecast(300.0, 1_234_567, 300 << 20))
        show.tell("prepare", 0, 2)
        show.tell("evaluate", 2, 2)
    said = capsys.readouterr().err
    assert "about 5 min, 1,234,567 bytes and 300 MiB a process" in said
    assert "prepare: 0 of 2, about 5 min left" in said
    assert "evaluate: 2 of 2\n" in said


def test_times_have_their_usual_unit():
    assert [in_words(each) for each in (7, 300, 7200 * 2, 86400 * 5000)] == [
        "7 s",
        "5 min",
        "4 h",
        "5,000 days",
    ]
