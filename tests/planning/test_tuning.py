"""`umpc plan --tune`: bins, levels and pairings of the least predicted error (corollary 1)."""

from __future__ import annotations

import json
from math import sqrt

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.bell import bell_study
from tests.support.local import bins, local_study
from tests.support.paper_bounds import corollary_1, optimal_pairings, theorem_2_lipschitz
from tests.support.studies import AUC, GINI
from umpc.cli.main import umpc
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.errors import StudyError
from umpc.planning import seconds as machine
from umpc.planning.alternatives import tune
from umpc.planning.prediction import attempt_over
from umpc.planning.reference_table import ConstantAnswer, ReferenceTable
from umpc.protocols.registry import protocol_of
from umpc.study.parts import FieldText
from umpc_papers.bell_2pc.pair_mechanisms import theorem_5
from umpc_papers.local.settings import BellAucSettings, CellSettings
from umpc_papers.local.tuning import COUNTS

WIDE = {"x": ("0", "99"), "kernels": GINI}


def over(study, columns, records="200,200"):
    attempt = attempt_over(study, records)
    return attempt, ReferenceTable.of(study, columns, attempt.counts)


def normal(count: int = 400) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(4).normal(40, 15, count)
    return {"x": np.clip(drawn, 0, 99).astype(np.int64)}


def test_the_bins_found_have_the_least_error_of_all_numbers_of_bins():
    """One field, so every number that is tried can be compared; more ε takes more bins."""
    found = {}
    for epsilon in ("1", "8"):
        attempt, table = over(local_study("bell-ldp", **WIDE, epsilon=epsilon), normal())
        made = tune(attempt, table)
        errors = {}
        for count in COUNTS[1:13]:
            other = attempt_over(attempt.study.replaced(bins=bins(x=count)), "200,200")
            errors[count] = protocol_of(other.study).error(other, table).mse
        (best,) = made.study.settings_as(CellSettings).bins
        assert made.error.mse == pytest.approx(min(errors.values()))
        assert errors[best.count] == min(errors.values()) and made.before.mse == errors[4]
        found[epsilon] = best.count
    assert COUNTS[12] == 96 and 2 <= found["1"] < found["8"] <= 96


def test_corollary_1_is_the_order_of_the_number_that_makes_theorem_2_least():
    """MSE ≤ theorem 1 + L²/k²: for small ε and many records k ~ n^(1/4) √(L ε), MSE ~ L/(√n ε)."""
    epsilon = 0.5
    for lipschitz in (1.0, 4.0):
        for records in (10**6, 10**8):

            def bound(k, lipschitz=lipschitz, records=records):
                truth = (np.exp(epsilon) - 1) / (k + np.exp(epsilon) - 1)
                return theorem_2_lipschitz(records, truth, k, lipschitz)

            k = corollary_1(records, epsilon, lipschitz)
            least = min(range(1, 400), key=bound)
            assert 0.5 < k / least < 2
            assert bound(k) < 4 * lipschitz / (sqrt(records) * epsilon)


def test_pairings_are_those_of_theorem_5():
    """ζ₂ = ¼, ζ₁ = 0: the more ε, the more pairings; theorem 5 has its minimum where we say."""
    for epsilon in (1.0, 10.0, 40.0):
        best = optimal_pairings(1000, epsilon, 0.0, 0.25)
        error = {p: theorem_5(1000, p, 0.0, 0.25, 2 * (p / epsilon) ** 2) for p in range(1, 60)}
        assert abs(min(error, key=error.get) - best) <= 1
    assert optimal_pairings(1000, 10.0, 0.125, 0.25) == 1.0, "a sum of functions of single records"
    bits = {"x": np.arange(400) % 2}
    edges = []
    for epsilon in ("1", "40"):
        attempt, table = over(bell_study(epsilon=epsilon, edges="2p"), bits)
        made = tune(attempt, table)
        assert made.error.mse <= made.before.mse
        edges.append(made.study.edges)
    assert edges[0] == "1p" and int(edges[1][:-1]) > 4


def test_between_classes_pairs_are_numbers_and_an_auc_has_levels():
    columns = {"x": np.arange(80) % 2, "label": np.arange(80) // 40}
    study = bell_study(AUC, sampling="two_sample", edges="2n", epsilon="1")
    attempt, table = over(study, columns, "20+20,20+20")
    assert tune(attempt, table).changed == {"edges": "40"}
    study = local_study("bell-auc", x=("0", "63"), levels=6, epsilon="1")
    columns = {"x": np.arange(600) % 64, "label": (np.arange(600) > 250).astype(np.int64)}
    attempt, table = over(study, columns, "125+175,125+175")
    made = tune(attempt, table)
    assert made.study.settings_as(BellAucSettings).levels < 6
    assert made.error.mse < made.before.mse


NEARLY_FLAT = {"x": np.arange(60) % 4, "y": np.arange(60) * 7 % 60 // 15}
"""Kendall's tau is 0.01, and any noise of bell-ldp over 60 records is larger."""


def test_no_tuned_plan_has_an_answer_that_is_the_same_for_all_records():
    """One bin of either field would have the least "error", |tau|: its estimate is always 0."""
    study = local_study("bell-ldp", epsilon="1/2")
    attempt, table = over(study, NEARLY_FLAT, "30,30")
    constant = attempt.with_study(study.replaced(bins=bins(x=1, y=4)))
    ignored = protocol_of(study).error(constant, table)
    assert table.constant == ConstantAnswer(0.0, abs(table.statistic))
    assert sqrt(ignored.mse) == pytest.approx(table.constant.error)
    made = tune(attempt, table)
    assert all(each.count > 1 for each in made.study.settings_as(CellSettings).bins)
    assert made.error.mse > ignored.mse and not made.beats_constant
    assert made.in_words().startswith("no setting here beats answering with a constant: bins = ")
    assert made.in_words().endswith(f"the constant 0 has error {table.constant.error:.3g}")
    clear = {"x": np.arange(400) % 4, "y": np.arange(400) % 4}
    made = tune(*over(local_study("bell-ldp", epsilon="4"), clear))
    assert made.beats_constant and "; the constant 0 has error 0.752" in made.in_words()


def test_a_study_of_one_bin_is_tuned_to_one_that_can_run():
    study = local_study("bell-ldp", bins=bins(x=1, y=4), epsilon="4")
    made = tune(*over(study, {"x": np.arange(400) % 4, "y": np.arange(400) % 4}))
    assert dict(made.changed)["bins"]["x"] > 1


def test_the_best_constant_is_0_or_the_middle_of_the_statistics_range():
    """It needs no record: the middle is never far off, and 0 is the value of most hypotheses."""
    for values, best in (([0, 99] * 100, 49.5), ([40, 41] * 100, 0.0)):
        _, table = over(local_study("bell-ldp", **WIDE), {"x": np.array(values)}, "100,100")
        assert table.constant == ConstantAnswer(best, abs(table.statistic - best))
    auc = local_study("bell-auc", x=("0", "63"), levels=4, epsilon="1")
    columns = {"x": np.arange(200) * 11 % 64, "label": np.arange(200) // 100}
    _, table = over(auc, columns, "50+50,50+50")
    assert table.constant == ConstantAnswer(0.5, abs(table.statistic - 0.5))


def test_what_has_nothing_to_tune_is_refused():
    attempt, table = over(bell_study(protocol="u-mpc", noise="distributed", edges="all"), normal())
    with pytest.raises(StudyError, match="no setting that trades one error for another"):
        tune(attempt, table)


def test_the_plan_prints_the_settings_for_the_table_it_is_given(tmp_path, limit):
    limit(machine, TRIAL_RECORDS=60)
    limit(machine, LONG_ENOUGH=1e-4)
    file = write_study_file(
        tmp_path,
        {
            "name": "tuned",
            "statistic": "gini_mean_difference",
            "columns": ["age"],
            "fields": [field_entry(FieldText("age", "0", "99", whole=True))],
            "epsilon": "8",
            "identity": "coordinator",
            "protocol": "bell-ldp",
            "nodes": [{"name": name, "address": "127.0.0.1:1"} for name in ("north", "south")],
        },
    )
    like = tmp_path / "like.csv"
    like.write_text("age\n" + "\n".join(map(str, normal()["x"])) + "\n", encoding="utf-8")
    command = ["plan", str(file), "--records", "200,200", "--like", str(like), "--tune"]
    shown = CliRunner().invoke(umpc, command, catch_exceptions=False)
    assert "tuned over like.csv: bins = {age = " in shown.stdout, shown.output
    said = json.loads(CliRunner().invoke(umpc, [*command, "--format", "json"]).stdout)
    assert set(said["tuned"]["settings"]) == {"bins"} and said["tuned"]["mse"] < said["mse"]
    assert said["tuned"]["beats_constant"] and said["tuned"]["mse"] < said["mse_of_constant"]
    assert "mse of constant (over like.csv)" in shown.stdout
