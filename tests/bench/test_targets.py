"""The targets of `make bench`: what a user waits for, each met or missed by its own seconds."""

from __future__ import annotations

import pytest

from bench.targets import JOBS, TARGETS, main, within


@pytest.mark.parametrize("work", TARGETS)
def test_each_target_is_met_or_missed_by_its_own_seconds(work):
    most = TARGETS[work]
    assert [within(work, each).verdict for each in (most - 0.01, most, most + 0.01)] == [
        *("met", "met", "missed")
    ]


def test_a_job_that_fails_has_no_measured_value_and_says_why(monkeypatch, capsys):
    def fails():
        raise RuntimeError("node-1 went away")

    monkeypatch.setitem(JOBS, "demo", fails)
    (figure,) = main(["demo"])
    assert (figure.verdict, figure.measured) == ("failed", "")
    assert "failed: job demo: RuntimeError: node-1 went away" in capsys.readouterr().out


def test_warm_milliseconds_have_no_target():
    assert list(JOBS)[-1] == "warm" and not any("warm" in work for work in TARGETS)
