"""umpc.estimate of statistics that are read off a table of counts, which choose their protocol."""

from __future__ import annotations

import numpy as np
import pytest

import umpc

LOUD = 10**9
TIMES = [[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]]
FRAMES = [{"time": times, "event": [1, 0, 1, 1, 1, 0], "arm": ["a", "b"] * 3} for times in TIMES]
BOUNDS = {"time": (0, 9, 1), "event": (0, 1, 1)}


def test_a_name_of_a_statistic_of_counts_is_enough():
    result = umpc.estimate("kaplan_meier", FRAMES, ["time", "event"], bounds=BOUNDS, epsilon=LOUD)
    report = result.report
    assert (report.protocol, report.statistic, report.records) == ("counts", "kaplan_meier", 12)
    times = np.concatenate(TIMES)
    events = np.array([1, 0, 1, 1, 1, 0] * 2)
    table = np.histogram2d(times, events, [np.arange(11) - 0.5, np.arange(3) - 0.5])[0]
    assert report.counts.values == table.astype(int).ravel().tolist()


def test_a_private_label_is_two_categories_in_their_order():
    words = [
        {**frame, "event": ["dead" if x else "alive" for x in frame["event"]]} for frame in FRAMES
    ]
    result = umpc.estimate(
        "kaplan_meier",
        words,
        ["time", "event", "arm"],
        bounds={"time": (0, 9, 1), "event": ["alive", "dead"], "arm": ["a", "b"]},
        epsilon=LOUD,
    )
    assert [axis.words for axis in result.report.counts.axes] == [[], ["alive", "dead"], ["a", "b"]]


def test_one_column_with_bounds_is_the_statistics_column():
    result = umpc.estimate("quantiles", FRAMES, bounds={"time": (0, 9, 1)}, epsilon=LOUD)
    assert result.estimate == np.median(np.concatenate(TIMES)) == 4.5 or result.estimate in (4, 5)


def test_columns_and_labels_are_asked_for_in_the_statistics_own_words():
    with pytest.raises(umpc.errors.StudyError, match="kaplan_meier takes time, event"):
        umpc.estimate("kaplan_meier", FRAMES, bounds=BOUNDS, epsilon=1)
    with pytest.raises(umpc.errors.StudyError, match="no field of a table is public"):
        umpc.estimate(
            "roc",
            FRAMES,
            ["time", "arm"],
            bounds={"time": (0, 9, 1), "arm": ["a", "b"]},
            label=("arm", "b"),
            epsilon=1,
        )
    with pytest.raises(umpc.errors.UmpcError, match="leave protocol out"):
        umpc.estimate(
            "quantiles", FRAMES, ["time"], bounds={"time": (0, 9, 1)}, epsilon=1, protocol="grid"
        )
