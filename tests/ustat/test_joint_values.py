"""umpc.ustat.joint_values: all values of several kernels, or a box around them."""

from __future__ import annotations

import numpy as np

from tests.support.fields import number_field
from tests.support.studies import make_study
from umpc.study.parts import FieldText
from umpc.ustat.released_means import joint_values
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text


def values_of(name: str, *columns: str, **changes) -> list[list[float]]:
    statistic = LIBRARY[name]
    kernels = tuple(map(to_text, statistic.expressions(columns)))
    study = make_study(kernels, degree=statistic.degree, estimator=statistic.estimator, **changes)
    return joint_values(study.parsed_kernels).tolist()


def test_comparisons_of_wide_fields_have_few_values_together():
    wide = {"x": ("0", "100000"), "y": ("0", "100000")}
    assert values_of("goodman_kruskal_gamma", "x", "y", **wide) == [[-1, 1], [0, 0], [1, 1]]
    found = values_of("kendall_tau_b", "x", "y", **wide)
    assert found == [[-1, 1, 1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1]]
    found = values_of("auc_private", "x", "y", x=("0", "9"), y=("0", "1"))
    assert found == [[0, 0], [0, 1], [0.5, 1], [1, 1]]


def test_one_kernel_has_its_ends_and_many_values_have_a_box():
    assert values_of("gini_mean_difference", "x", x=("0", "10", "0.5")) == [[0], [10]]
    study = make_study(("abs(a.x - b.x)", "abs(a.y - b.y)"), estimator="ratio", y=("0", "5"))
    corners = {(0, 0), (0, 5), (3, 0), (3, 5)}
    assert set(map(tuple, joint_values(study.parsed_kernels).tolist())) == corners


def test_a_mean_inside_a_stratum_is_zero_outside_and_in_its_range_inside():
    inside = "((a.s == 0) & (b.s == 0))"
    strata = FieldText.of_categories("s", ["f", "m"])
    wide = number_field("x", "2", "90")
    for text, found in (
        ("abs(a.x - b.x)", [[0, 0], [0, 1], [88, 1]]),
        ("a.x + b.x", [[0, 0], [4, 1], [180, 1]]),
    ):
        for otherwise, points in (("0", found), ("1", None)):
            kernels = (f"select({inside}, {text}, {otherwise})", inside)
            study = make_study(kernels, estimator="ratio", fields=(wide, strata))
            values = joint_values(study.parsed_kernels).tolist()
            assert values == points if points else [1, 0] in values


def test_a_spread_a_difference_and_labels_bound_their_ratios():
    amounts = {"x": ("2", "90")}
    assert values_of("gini_coefficient", "x", **amounts) == [[0, 4], [0, 180], [88, 92]]
    assert values_of("asymmetry", "x", x=("-5", "90"))[0] == [-95, 0]
    assert values_of("energy_distance", "x", "y", x=("0", "90"), y=("0", "1")) == [
        [-180, 1],
        [0, 0],
        [180, 1],
    ]


def test_no_records_have_a_value_outside_the_hull():
    rng = np.random.default_rng(3)
    found = np.array(values_of("kendall_tau_b", "x", "y"))
    study = make_study(
        tuple(map(to_text, LIBRARY["kendall_tau_b"].expressions(["x", "y"]))),
        estimator="geometric_ratio",
    )
    records = [{name: rng.integers(0, 4, 200) for name in "xy"} for _ in range(2)]
    rows = {tuple(row) for row in np.stack([k.evaluate(records) for k in study.parsed_kernels], 1)}
    assert rows <= set(map(tuple, found.astype(int).tolist()))
