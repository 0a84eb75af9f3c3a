"""`variance` of a study file beside several statistics and strata."""

from __future__ import annotations

import pytest

from tests.support.studyfiles import planned_file
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import StudyError

SEVERAL = {
    "statistic": None,
    "columns": None,
    "statistics": [
        {"statistic": "kendall_tau", "columns": ["age", "balance"]},
        {"statistic": "gini_mean_difference", "columns": ["age"]},
    ],
}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"variance": "bogus"}, "`variance` is one of"),
        ({"variance_share": "1/5"}, "goes with variance"),
        ({"variance": "private"}, "takes the mean of one kernel over pairs"),
    ],
    ids=str,
)
def test_a_variance_that_several_statistics_cannot_have_is_refused(tmp_path, changes, match):
    path = planned_file(tmp_path, ["a", "b"], **SEVERAL, **changes)
    with pytest.raises(StudyError, match=match):
        load_study_file(path).study("coordinator")
