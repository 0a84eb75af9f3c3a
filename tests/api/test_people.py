"""umpc.estimate over people with one value each: the rows of one table, and two aggregators."""

from __future__ import annotations

import numpy as np
import pytest

import umpc
from umpc.errors import StudyError

PEOPLE = {"age": [34, 51, 29, 62, 41, 23], "sex": ["f", "m", "f", "f", "m", "m"]}
BOUNDS = {"age": (0, 99), "sex": ["f", "m"]}
FACTS = {"epsilon": 1e9, "protocol": "people"}


def estimate(statistic="gini_mean_difference", people=(PEOPLE,), **changes):
    columns = changes.pop("columns", ["age"])
    return umpc.estimate(statistic, list(people), columns, bounds=BOUNDS, **(FACTS | changes))


def mean_difference(ages) -> float:
    gaps = np.abs(np.subtract.outer(ages, ages))
    return gaps.sum() / (len(ages) * (len(ages) - 1))


def test_people_are_the_rows_of_all_tables_together():
    expected = pytest.approx(mean_difference(PEOPLE["age"]))
    apart = [{key: values[i::2] for key, values in PEOPLE.items()} for i in (0, 1)]
    for people in ((PEOPLE,), apart):
        result = estimate(people=people)
        assert result.estimate == expected
        assert (result.report.records, result.report.nodes) == (6, 2)


def test_strata_and_covariance_of_people_are_the_clear_ones():
    for sex, part in estimate(strata="sex").parts.items():
        rows = zip(PEOPLE["age"], PEOPLE["sex"], strict=True)
        own = [age for age, of_person in rows if of_person == sex]
        assert part.estimate == pytest.approx(mean_difference(own))
    assert estimate("variance").estimate == pytest.approx(np.var(PEOPLE["age"], ddof=1))


def test_a_report_says_who_must_not_collude_and_what_a_changed_program_could_read():
    page = estimate().to_html().replace("&#x27;", "'")
    for words in (
        "No two of the dealer and both aggregators may collude",
        "Two aggregators under one administrator are one.",
        "could read a person's value if it changed its program",
        "people, in shares",
        "an anonymous token has none",
    ):
        assert words in page


def test_a_condition_is_refused_because_an_aggregator_sees_no_value():
    with pytest.raises(StudyError, match="cannot leave a person out"):
        estimate(where="age >= 30")


def test_linked_rows_are_refused_with_what_to_do():
    with pytest.raises(StudyError, match='by their keys, and take protocol="people"'):
        estimate(protocol="linked", linked={"first": ["age"], "rows": 6})


def test_one_person_is_too_few():
    with pytest.raises(StudyError, match="fewest people"):
        estimate(people=[{"age": [34]}])
