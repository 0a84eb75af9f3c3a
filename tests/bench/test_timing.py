"""`python -m bench.timing`: real sessions give every time, and the guesses find a leak."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from bench.guessing import auc, combined, standard_error
from bench.timed_sessions import NODES, Session, drawing, read_once, small_study

COUNT = 400
SEED = 5


def test_a_session_of_real_nodes_has_all_times_and_its_noise():
    values = iter(range(100, 100 + 2 * NODES))
    study = small_study()
    sessions = [Session(study), Session(study)]
    with drawing(lambda bits: next(values)) as drawn, read_once(study):
        for session in sessions:
            asyncio.run(session.run())
    assert drawn == list(range(100, 100 + 2 * NODES))
    for session in sessions:
        assert list(session.times) == [
            "accepted",
            "opened",
            "link",
            "prepared",
            "frame 1",
            "frame 2",
            "ready",
            "released",
        ]
        assert all(min(pair) > 0 for pair in session.times.values())


@pytest.mark.parametrize("leak", [0.0, 1.0])
def test_a_leak_is_found_and_independent_times_tell_nothing(leak):
    rng = np.random.default_rng(SEED)
    event = rng.random(COUNT) < 0.4
    times = rng.normal(size=(COUNT, 3))
    times[:, 1] += leak * event
    guesses = combined(times, event)
    alone = auc(times[:, 1], event)
    assert alone is not None and (alone > 0.7) == bool(leak)
    assert abs(auc(times[:, 0], event) - 0.5) < 4 * standard_error(event)
    for guess in guesses.values():
        assert guess is not None and (guess > 0.6) == bool(leak)


def test_a_leak_that_only_two_times_together_show_is_found():
    """Each time alone has noise that both share."""
    rng = np.random.default_rng(SEED)
    event = rng.random(COUNT) < 0.5
    shared = rng.normal(scale=5, size=COUNT)
    times = np.stack([shared, shared + event + rng.normal(scale=0.3, size=COUNT)], axis=1)
    alone = auc(times[:, 1], event)
    guess = combined(times, event)["logistic regression"]
    assert alone is not None and alone < 0.6
    assert guess is not None and guess > 0.7


def test_a_rare_event_has_no_auc():
    event = np.zeros(COUNT, dtype=bool)
    event[:19] = True
    times = np.random.default_rng(SEED).normal(size=(COUNT, 2))
    assert auc(times[:, 0], event) is None
    assert set(combined(times, event).values()) == {None}


def test_the_standard_error_is_that_of_equal_halves():
    event = np.arange(10_000) % 2 == 0
    assert standard_error(event) == pytest.approx(0.00577, abs=1e-5)
