"""One statistic of all pairs of columns: values, repair, Holm, documents, pages and refusals."""

from __future__ import annotations

import json
from itertools import combinations

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import umpc
from umpc.cli.infer import infer
from umpc.errors import StudyError
from umpc.inference.matrix import holm, nearest_correlations
from umpc.reporting.json_document import SCHEMA, check_document
from umpc.reporting.rows import table_rows
from umpc.study.report import Report
from umpc.testing import lying

RNG = np.random.default_rng(50)
NAMES = ["age", "dose", "score", "weight"]
BOUNDS = {name: (0, 1000) for name in NAMES}
SETTINGS = {"protocol": "vector", "delta": "1e-6", "edges": "all", "matrix": True}


def site(records: int) -> dict[str, np.ndarray]:
    common = RNG.normal(size=(records, 1))
    values = np.clip(np.rint(500 + 80 * (common + RNG.normal(size=(records, 4)))), 0, 1000)
    return dict(zip(NAMES, values.T.astype(int), strict=True))


SITES = [site(30), site(30)]
POOLED = {name: np.concatenate([each[name] for each in SITES]) for name in NAMES}


def asked(statistic: str = "kendall_tau", columns=NAMES, sites=SITES, **changes) -> umpc.Result:
    settings = {"epsilon": 20, "bounds": BOUNDS, **SETTINGS, **changes}
    return umpc.estimate(statistic, sites, columns, **settings)


@pytest.fixture(scope="module")
def exact() -> umpc.Result:
    return without_noise()


def without_noise(*given, **changes) -> umpc.Result:
    with lying("everybody", draw=lambda *_: 0):
        return asked(*given, epsilon=10**9, **changes)


def test_without_noise_kendalls_matrix_is_scipys(exact):
    matrix = exact.matrix()
    assert matrix.columns == NAMES and matrix.statistic == "kendall_tau"
    for row, x in enumerate(NAMES):
        assert matrix.values[row][row] == 1
        for column, y in enumerate(NAMES):
            if x != y:
                signs = [np.sign(np.subtract.outer(POOLED[each], POOLED[each])) for each in (x, y)]
                tau_a = (signs[0] * signs[1]).sum() / (60 * 59)
                assert matrix.values[row][column] == pytest.approx(tau_a, abs=1e-12)
                # tau-b differs by the few ties
                tau_b = stats.kendalltau(POOLED[x], POOLED[y]).statistic
                assert matrix.values[row][column] == pytest.approx(tau_b, abs=0.01)


def test_without_noise_phis_matrix_is_numpys():
    halves = [{name: (each[name] > 500).astype(int) for name in NAMES} for each in SITES]
    bounds = {name: (0, 1) for name in NAMES}
    found = without_noise("phi_coefficient", sites=halves, bounds=bounds).matrix()
    pooled = np.array([np.concatenate([each[name] for each in halves]) for name in NAMES])
    assert np.array(found.values) == pytest.approx(np.corrcoef(pooled), abs=1e-9)


def test_without_noise_spearmans_matrix_is_scipys_by_hoeffdings_formula():
    columns = {name: RNG.permutation(16) for name in NAMES[:3]}
    halves = [
        {name: each[part] for name, each in columns.items()} for part in (range(8), range(8, 16))
    ]
    matrix = without_noise("spearman_rho", NAMES[:3], halves).matrix()
    for row, column in combinations(range(3), 2):
        pair = [columns[NAMES[place]] for place in (row, column)]
        tau, rho = stats.kendalltau(*pair).statistic, stats.spearmanr(*pair).statistic
        # Hoeffding 1948, 9.19: rho = (n − 2)/(n + 1)·U + 3/(n + 1)·tau
        expected = (17 * rho - 3 * tau) / 14
        assert matrix.values[row][column] == pytest.approx(expected, abs=1e-9)


def test_all_of_epsilon_is_for_all_pairs_together(exact):
    report = asked().report
    assert (
        {part.epsilon for part in report.parts} == {entry.epsilon for entry in report.sums} == {20}
    )
    assert report.delta == 1e-6
    # 4 columns: ⌊16/4⌋ in place of 6 sums
    alone = asked(
        matrix=False,
        columns=None,
        statistic=[("kendall_tau", list(pair)) for pair in combinations(NAMES, 2)],
    ).report
    ratio = report.sums[0].noise_std / alone.sums[0].noise_std
    assert ratio == pytest.approx((4 / 6) ** 0.5, rel=0.01)


def test_holm_is_that_of_the_book():
    # Holm 1979 by R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


def test_holm_rejects_no_true_hypothesis_more_often_than_the_level():
    rng = np.random.default_rng(1)
    drawn = rng.uniform(size=(4000, 6))
    wrong = np.mean([min(holm(list(row))) <= 0.05 for row in drawn])
    assert wrong <= 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5


def test_the_nearest_matrix_is_highams_example():
    # Higham 2002, section 4: the matrix of Borsdorf's and NAG's g02aa documentation
    given = np.array([[2, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 2]], float)
    found = nearest_correlations(given)
    expected = np.array(
        [
            [1.0, -0.8084, 0.1916, 0.1068],
            [-0.8084, 1.0, -0.6562, 0.1916],
            [0.1916, -0.6562, 1.0, -0.8084],
            [0.1068, 0.1916, -0.8084, 1.0],
        ]
    )
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_repair_is_a_correlation_matrix_and_is_said():
    matrix = asked(epsilon="1/4").matrix()
    nearest = np.array(matrix.nearest)
    assert matrix.moved > 0 and f"{matrix.moved:.2g}" in matrix.about and "Higham" in matrix.about
    assert np.linalg.eigvalsh(nearest).min() > -1e-9
    assert np.diagonal(nearest) == pytest.approx(1)
    assert np.abs(nearest).max() <= 1 + 1e-12


def test_a_correlation_matrix_stays_as_it_is(exact):
    matrix = exact.matrix()
    assert matrix.moved == 0 and "as they were released" in matrix.about
    assert np.array(matrix.nearest) == pytest.approx(np.array(matrix.values), abs=1e-6)


def test_p_values_are_each_pairs_own_and_holms_are_not_below(exact):
    matrix = asked().matrix()
    for row, column in combinations(range(4), 2):
        own = matrix.p_values[row][column]
        assert own is not None and own <= matrix.holm[row][column] <= 1
    parts = exact.parts
    assert exact.matrix().p_values[0][1] == parts["kendall_tau(age, dose)"].p_value()


def test_document_page_and_table_have_the_matrix(exact):
    values = exact.to_dict()
    check_document(values)
    jsonschema.validate(values, json.loads(SCHEMA.read_text()))
    assert values["matrix"]["columns"] == NAMES
    again = umpc.Result(Report.from_dict(values))
    assert again.matrix() == exact.matrix()
    page = exact.to_html()
    assert page.count("<rect") == 16 and "Holm" in page and "complete in all 4 columns" in page
    assert exact.plot().svg in page, "a notebook shows the heat map, too"
    told = [row for row in table_rows(exact.report, {}) if "(Holm)" in row[2]]
    assert len(told) == 6


def test_infer_says_that_the_p_value_of_one_pair_is_not_corrected(exact, tmp_path):
    file = str(exact.save(tmp_path / "report.json"))
    shown = CliRunner().invoke(infer, [file, "--part", "2"], catch_exceptions=False).output
    assert shown.endswith("not corrected for the 6 values; its matrix has Holm's p-values\n")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"statistic": "somers_d"}, "takes one of kendall_tau"),
        ({"columns": ["age", "age", "dose"]}, "3 columns, 2 of them different"),
        ({"columns": ["age"]}, "and 1 columns"),
        ({"delta": ""}, "delta goes with"),
        ({"protocol": "u-mpc"}, "`matrix` is not a key"),
    ],
)
def test_other_matrices_are_refused_in_words(changes, reason):
    with pytest.raises(StudyError, match=reason):
        asked(**changes)


def test_twenty_columns_at_most():
    names = [f"c{number}" for number in range(21)]
    frame = {name: np.arange(5) for name in names}
    with pytest.raises(StudyError, match="2 to 20 different columns"):
        asked(columns=names, sites=[frame], bounds={name: (0, 9) for name in names})


def test_a_report_without_all_pairs_has_no_matrix():
    two = [("kendall_tau", ["age", "dose"]), ("kendall_tau", ["age", "score"])]
    found = umpc.estimate(two, SITES, bounds=BOUNDS, epsilon=4)
    assert "matrix" not in found.to_dict()
    with pytest.raises(StudyError, match="every pair of 3 columns or more"):
        found.matrix()
