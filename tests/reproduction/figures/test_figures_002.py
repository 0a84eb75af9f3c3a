"""The figure 002-gain: a point is measured and predicted, and the verdict follows the gain."""

from __future__ import annotations

import pytest

from reproduction.figures.figure import Row
from reproduction.figures.paper002 import gain

POINTS = {(point.series, point.x): point for point in gain.points(False)}


@pytest.mark.parametrize("series", [gain.LAPLACE, gain.OWN, gain.CURATOR])
def test_a_point_is_measured_and_predicted(series):
    point = next(point for point in gain.points(True) if point.series == series)
    measured, predicted = gain.measure(point, bytes(32))["squared_error"], gain.predict(point)
    assert len(measured) == point.facts["runs"] and 0 < max(measured) < 100 * predicted


def test_the_predicted_error_without_a_curator_falls_faster_than_that_of_laplace_noise():
    """With n^(-3) in place of n^(-2), squared: ten times more records gain about √10."""
    places = (8_000, 128_000)
    own, laplace = (
        [gain.predict(POINTS[series, place]) for place in places]
        for series in (gain.OWN, gain.LAPLACE)
    )
    assert laplace[0] / laplace[1] == pytest.approx(16**2, rel=0.01)
    assert own[0] / own[1] == pytest.approx(16**3, rel=0.1)


@pytest.mark.parametrize(("last", "verdict"), [(0.1, "agrees"), (4.0, "disagrees")])
def test_the_verdict_follows_the_gain(last, verdict):
    errors = {(gain.LAPLACE, 500): 1.0, (gain.LAPLACE, 2_000): 1.0}
    errors |= {(gain.OWN, 500): 2.0, (gain.OWN, 2_000): last}
    rows = [
        Row(POINTS[place], {"squared_error": error}, {"squared_error": 0.1}, 4, 1.0)
        for place, error in errors.items()
    ]
    found = gain.agreement(rows)
    assert found.verdict == verdict and f"n = 2,000: {last**-0.5:.2g}" in found.reason
