"""A study with a condition on records, over real processes: its numbers, its policy, its ledger."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from tests.system.conftest import TABLE
from umpc.coordinator.client import run_study
from umpc.errors import PolicyRefused
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

LOUD = {"edges": "all", "backend": "grid", "epsilon": "1e12", "noise": "distributed"}
RULES = '[policy]\nmin_colluding = 0\npublic_filters = ["age"]\n'


def exact(least: int) -> tuple[float, int]:
    """Kendall's tau over the records of two such tables that are old enough, and their number."""
    rows = [row for row in csv.DictReader(io.StringIO(TABLE)) if int(row["age"]) >= least]
    age, balance = (np.array([float(row[name]) for row in rows] * 2) for name in ("age", "balance"))
    product = np.sign(np.subtract.outer(age, age)) * np.sign(np.subtract.outer(balance, balance))
    return product.sum() / (len(age) * (len(age) - 1)), len(rows)


def test_each_site_leaves_out_records_and_its_ledger_tells_the_data_apart(lab):
    here = lab(2).start(epsilon="9" + "0" * 14, more=RULES)
    for least in (20, 30):
        value, count = exact(least)
        where = f"age >= {least}"
        report = here.lead(run_study, name=f"from-{least}", where=where, max_colluding=0, **LOUD)
        assert abs(report.estimate - value) < 1e-6
        assert (report.records_by_node, report.where) == ([count] * 2, where)
    again = here.lead(run_study, name="again", where="(age>=30)", max_colluding=0, **LOUD)
    assert abs(again.estimate - value) < 1e-6
    with pytest.raises(PolicyRefused, match="public_filters"):
        here.lead(run_study, name="other", where="balance >= 0", max_colluding=0, **LOUD)
    here.stop()
    cohorts = list(read_beside(Place.of(here.folder / "node-1-ledger.sqlite")).cohorts.values())
    assert len(cohorts) == 3
    assert [cohorts[0].is_same(each) for each in cohorts] == [True, False, False]
    assert cohorts[1].is_same(cohorts[2])
