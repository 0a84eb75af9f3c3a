"""Forty real studies: their first intervals hold the value on all pairs."""

from __future__ import annotations

import numpy as np
from scipy import stats

from tests.system.conftest import FIELDS
from umpc.study.parts import FieldText

STUDIES = 40
LEAST = int(stats.binom.ppf(1e-4, STUDIES, 0.95))
"""Fewer of 40 intervals of 95 % hold the value once in 10^4 tests."""
RECORDS = 24


def test_forty_real_studies_hold_the_value_on_all_pairs(lab):
    """A small E of few records, so that sampling is most of the error."""
    here = lab(2).start(epsilon="1000")
    rng = np.random.default_rng(40)
    tables = []
    for name in here.names:
        age = rng.integers(20, 90, RECORDS)
        balance = np.clip(10 * age + rng.integers(-200, 400, RECORDS), 0, 1000)
        tables.append(np.stack([age, balance]))
        rows = [f"{a},{b}" for a, b in zip(age, balance, strict=True)]
        here.table(name).write_text("\n".join(["age,balance", *rows]) + "\n")
    age, balance = np.concatenate(tables, axis=1)
    signs = np.sign(np.subtract.outer(age, age)) * np.sign(np.subtract.outer(balance, balance))
    truth = signs.sum() / (len(age) * (len(age) - 1))
    assert {field.name for field in FIELDS} >= {"age", "balance"}
    fields = (
        FieldText("age", "0", "127", whole=True),
        FieldText("balance", "0", "1000", whole=True),
    )
    held, by_noise = 0, 0
    for number in range(STUDIES):
        changes = {"name": f"coverage-{number}", "epsilon": "10", "edges": "1n", "fields": fields}
        outcome = here.run(**changes)
        assert outcome.code == 0, outcome.error
        report = outcome.report
        assert report["interval_covers"] == "the value on all pairs of the records"
        held += report["low"] <= truth <= report["high"]
        by_noise += report["noise_low"] <= truth <= report["noise_high"]
    assert held >= LEAST, f"{held} of {STUDIES} intervals hold the value"
    assert by_noise < LEAST, "the noise alone does not: this test can fail"
