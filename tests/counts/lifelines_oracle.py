"""Survival of lung from counts without noise, beside lifelines: `make oracles` runs it.

lifelines is not installed for `make test`. It takes the events of one time before the censored
records of that time, as umpc does.
"""

from __future__ import annotations

import numpy as np
import pytest
from lifelines import KaplanMeierFitter, NelsonAalenFitter
from lifelines.statistics import logrank_test
from lifelines.utils import restricted_mean_survival_time

from tests.support.released_tables import asker, cells_of_columns, flag, lung, whole

LAST = 1022
DATA = lung()
OLD = DATA["age"] >= 65
DAYS = whole("time", 0, LAST, range(1, LAST + 1))


@pytest.fixture(scope="module")
def asked():
    axes = [DAYS, flag("event"), whole("age", 30, 90, [65])]
    return asker(axes, cells_of_columns(axes, [DATA[axis.field] for axis in axes]))


@pytest.mark.parametrize("place", [0, 1])
def test_the_curves_of_both_groups_are_those_of_lifelines(asked, place):
    those = place == OLD
    given = DATA["time"][those], DATA["event"][those]
    curve, hazard = KaplanMeierFitter().fit(*given), NelsonAalenFitter(nelson_aalen_smoothing=False)
    theirs = curve.survival_function_at_times(range(LAST + 1)).to_numpy()
    answer = asked.ask("kaplan_meier")
    assert np.ptp(theirs) > 0.9
    assert answer.series[place].value == pytest.approx(theirs, abs=1e-12)
    medians = [each.value for each in answer.numbers if each.name.startswith("median")]
    assert medians[place] == curve.median_survival_time_
    means = [each.value for each in answer.numbers if each.name.startswith("restricted")]
    assert means[place] == pytest.approx(restricted_mean_survival_time(curve, t=LAST))
    sums = hazard.fit(*given).cumulative_hazard_at_times(range(LAST + 1)).to_numpy()
    assert sums[-1] > 1.5
    assert asked.ask("nelson_aalen").series[place].value == pytest.approx(sums, abs=1e-12)


@pytest.mark.parametrize(("kind", "weights"), [("logrank", None), ("gehan", "wilcoxon")])
def test_both_tests_are_those_of_lifelines(asked, kind, weights):
    sides = [DATA[name][those] for name in ("time", "event") for those in (OLD, ~OLD)]
    theirs = logrank_test(*sides, weightings=weights)
    answer = asked.ask(kind)
    assert answer.number("chi-squared").value == pytest.approx(theirs.test_statistic, rel=1e-6)
    # ours is that of simulated studies
    assert answer.number("p-value").value == pytest.approx(theirs.p_value, abs=0.03)
