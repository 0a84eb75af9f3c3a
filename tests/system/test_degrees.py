"""Statistics of every degree over real processes; results without noise are exact."""

from __future__ import annotations

import numpy as np
import pytest

from tests.system.conftest import FIELDS as LAB_FIELDS
from tests.system.conftest import Lab
from umpc.cli.table import exact_over_all, pooled
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import PolicyRefused
from umpc.study.computation import Computation
from umpc.study.parts import FieldText
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import to_text

CLASS = FieldText.of_categories("class", ("case", "control"), public=True)
FIELDS = (
    FieldText("x", "0", "20", whole=True),
    FieldText("y", "-5", "5", "0.5"),
    FieldText("label", "0", "2", whole=True),
    FieldText("answer", "0", "1", whole=True),
    CLASS,
)
NOISELESS = "1e12"
STATISTICS = {
    "mean": ["x"],
    "kendall_tau_b": ["x", "y"],
    "auc_private": ["x", "answer"],
    "auc": ["y"],
    "spearman_rho": ["x", "y"],
    "spearman_rho_b": ["x", "y"],
    "triples_skewness": ["y"],
    "vus": ["y", "label"],
    "bergsma_dassios_tau_star": ["x", "y"],
}


def table(node: int, records: int) -> str:
    """Return a node's table, the same in every run."""
    rng = np.random.default_rng(node)
    rows = (
        f"{rng.integers(0, 21)},{rng.integers(-10, 11) / 2},"
        f"{rng.integers(0, 3)},{rng.integers(0, 2)},{rng.choice(['case', 'control'])}"
        for _ in range(records)
    )
    return "\n".join(["x,y,label,answer,class", *rows]) + "\n"


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """Provide five nodes with few records, so that edges have up to four owners."""
    here = Lab(tmp_path_factory.mktemp("five"), 5)
    try:
        here.start(epsilon="99" + "0" * 14, more='[policy]\npublic_labels = ["class"]\n')
        for number, name in enumerate(here.names):
            here.table(name).write_text(table(number, number + 2))
        yield here
    finally:
        here.stop()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_degree_is_exact_without_noise(five, statistic):
    settings = {
        "statistic": statistic,
        "columns": STATISTICS[statistic],
        "fields": FIELDS,
        "edges": "all",
    }
    outcome = five.run(name=statistic.replace("_", "-"), epsilon=NOISELESS, **settings)
    assert outcome.code == 0, outcome.error
    report = outcome.report
    study = load_study_file(five.folder / "study.toml").study("coordinator")
    expected = exact_over_all(study, pooled(study, [five.table(name) for name in five.names]))
    assert report["estimate"] == pytest.approx(expected, abs=1e-12)
    assert report["edges"] == report["sets"] and report["degree"] == study.degree
    assert report["rounds"] == report["rounds_predicted"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["bytes_offline"] == report["bytes_offline_predicted"]


def test_a_site_that_allows_certain_kernels_refuses_others_and_names_the_hash(lab):
    (expression,) = find_statistic("kendall_tau").expressions(["age", "balance"])
    allowed = Computation(
        protocol="u-mpc",
        adversary="honest",
        estimator="mean",
        sampling="balanced",
        degree=2,
        kernels=(to_text(expression),),
        fields=LAB_FIELDS,
    )
    here = lab(2).start(more=f'[policy]\nkernels = ["{allowed.hash}"]\n')
    assert here.run().code == 0
    refused = here.run(name="other", statistic="covariance")
    assert refused.code == PolicyRefused.exit_code, refused.error
    assert "[policy]" in refused.last_line and "no epsilon was charged" in refused.last_line


def test_kendalls_sum_over_four_sites_is_exact(lab):
    """The sum over all pairs of four unequal tables is the sum over their pooled records."""
    here = lab(4).start(epsilon="9" + "0" * 13)
    rng = np.random.default_rng(1988)
    values = [rng.integers((80, 85), (201, 604), (size, 2)) for size in (61, 40, 23, 12)]
    for name, own in zip(here.names, values, strict=True):
        lines = [f"{pressure},{cholesterol}" for pressure, cholesterol in own]
        here.table(name).write_text("\n".join(["trestbps,chol", *lines]) + "\n")
    rows = np.concatenate(values)
    first, second = np.triu_indices(len(rows), 1)
    expected = np.sign(rows[first] - rows[second]).prod(axis=1).sum()
    fields = (
        FieldText("trestbps", "0", "250", whole=True),
        FieldText("chol", "0", "700", whole=True),
    )
    outcome = here.run(edges="all", epsilon=NOISELESS, columns=["trestbps", "chol"], fields=fields)
    assert outcome.code == 0, outcome.error
    assert round(outcome.report["estimate"] * outcome.report["edges"]) == expected
