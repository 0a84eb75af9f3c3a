"""Two statistics in two strata over real processes: their values, one charge, and the replay."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.system.conftest import FIELDS
from umpc.coordinator.client import run_study
from umpc.study.parts import FieldText

RNG = np.random.default_rng(58)
AGE, BALANCE = RNG.integers(20, 50, 40), RNG.integers(-20, 60, 40)
SEX = RNG.choice(["f", "m"], 40, p=[0.3, 0.7])
TABLE = "age,balance,sex\n" + "".join(
    f"{a},{b},{s}\n" for a, b, s in zip(AGE, BALANCE, SEX, strict=True)
)
FILE = {
    "statistic": None,
    "columns": None,
    "statistics": [
        {"statistic": "kendall_tau", "columns": ["age", "balance"]},
        {"statistic": "gini_mean_difference", "columns": ["age"]},
    ],
    "strata": "sex",
    "fields": (*FIELDS, FieldText.of_categories("sex", ["f", "m"])),
    "backend": "grid",
    "edges": "all",
    "epsilon": "1e12",
    "noise": "distributed",
}


def exact(sex: str) -> tuple[float, float]:
    """Kendall's tau and Gini's mean difference inside the stratum, of two such tables."""
    age, balance = (np.tile(column[sex == SEX], 2) for column in (AGE, BALANCE))
    pairs = len(age) * (len(age) - 1)
    ages, balances = np.subtract.outer(age, age), np.subtract.outer(balance, balance)
    return (np.sign(ages) * np.sign(balances)).sum() / pairs, np.abs(ages).sum() / pairs


def test_a_run_reports_every_value_and_a_replay_repeats_them(lab):
    here = lab(2).start(epsilon="1" + "0" * 12)
    for name in here.names:
        here.table(name).write_text(TABLE)
    report = here.lead(run_study, **FILE)
    found = [(part.statistic, part.stratum, part.estimate) for part in report.parts]
    tau, gini = "kendall_tau(age, balance)", "gini_mean_difference(age)"
    for place, (name, at) in enumerate(((tau, 0), (gini, 1))):
        for number, sex in enumerate("fm"):
            assert found[2 * place + number][:2] == (name, sex)
            assert abs(found[2 * place + number][2] - exact(sex)[at]) < 1e-6
    again = here.lead(run_study, **FILE)
    assert again.replayed and again.parts == report.parts
    here.stop()
    assert here.spent("node-1") == Fraction(10**12)
