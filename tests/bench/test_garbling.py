"""`python -m bench.garbling`: a new statistic of pairs has a circuit over the bank's fields."""

from __future__ import annotations

from bench.garbling import FIELDS
from umpc.ustat.statistics import LIBRARY


def test_every_argument_of_a_statistic_of_pairs_has_a_field():
    pairs = [statistic for statistic in LIBRARY.values() if statistic.degree == 2]
    arguments = {argument for statistic in pairs for argument in statistic.arguments}
    assert arguments == set(FIELDS)
