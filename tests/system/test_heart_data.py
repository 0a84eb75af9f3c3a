"""A statistic over four hospitals, on data that are collected only where they are at hand."""

from __future__ import annotations

import csv

import pytest

from tests.support.tables import HEART
from umpc.study.parts import FieldText

NOISELESS = "1e12"


@pytest.mark.parametrize("backend", ["shared", "grid"])
def test_kendalls_sum_over_four_hospitals_is_exact(lab, backend):
    """Use trestbps and chol of the heart data, one hospital per node, and all pairs."""
    here = lab(4).start(epsilon="9" + "0" * 13)
    with HEART.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if row["trestbps"].strip() and row["chol"].strip()]
    sites = sorted({row["site"] for row in rows})
    for name, site in zip(here.names, sites, strict=True):
        lines = [f"{row['trestbps']},{row['chol']}" for row in rows if row["site"] == site]
        here.table(name).write_text("\n".join(["trestbps,chol", *lines]) + "\n")
    fields = (
        FieldText("trestbps", "0", "250", whole=True),
        FieldText("chol", "0", "700", whole=True),
    )
    outcome = here.run(
        edges="all",
        backend=backend,
        epsilon=NOISELESS,
        columns=["trestbps", "chol"],
        fields=fields,
    )
    assert outcome.code == 0, outcome.error
    assert round(outcome.report["estimate"] * outcome.report["edges"]) == 24_267
