"""Every statistic of one or two records over real processes, with both backends.

Each result must equal the value in the clear over the same E.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from tests.protocols.u_mpc.test_garbled import PAIRS
from tests.protocols.u_mpc.test_library import PARAMETERS, columns_of, fields_of
from umpc.cli.table import exact_value, pooled
from umpc.coordinator.studyfile import load_study_file
from umpc.mpc.attempt import edges_of
from umpc.node.told_order import orders_told

RECORDS = (7, 6)
SILENT = {"epsilon": "1e9", "noise": "distributed", "max_colluding": 0}
RULES = '[policy]\nmin_colluding = 0\npublic_labels = ["label"]\n'
WAYS = {
    "shared": {"backend": "shared", "preprocessing": "dealer"},
    "garbled": {"backend": "garbled", "preprocessing": "none", "dealer": None},
}


def test_every_pair_statistic_is_the_same_by_both_backends_as_in_the_clear(lab, tmp_path):
    told = orders_told(tmp_path / f"node-{number}.csv" for number in (1, 2))
    here = lab(2, told).start(epsilon="1000000000000", more=RULES)
    rng = np.random.default_rng(5)
    for name in PAIRS:
        for table, count in zip(map(here.table, here.names), RECORDS, strict=True):
            write_table(table, name, count, rng)
        for way, facts in WAYS.items():
            outcome = here.run(
                **study_facts(name), **SILENT, **facts, name=f"{name}-{way}".replace("_", "-")
            )
            assert outcome.code == 0, f"{name}, {way}: {outcome.error}"
            report = outcome.report
            assert report["estimate"] == in_the_clear(here, report), (name, way)
            assert (
                report["backend"] == way
                and report["bytes_online"] == report["bytes_online_predicted"]
            )


def write_table(path: Path, name: str, count: int, rng: np.random.Generator) -> None:
    """Write records with few different values, so that ties and both bounds occur."""
    columns = {}
    for field in fields_of(name):
        values = field.categories or [field.lower, "0", "1", "0.5", field.upper]
        if field.whole and not field.categories:
            values = [str(value) for value in range(int(field.upper) + 1)]
        columns[field.name] = [values[i] for i in rng.integers(0, len(values), count)]
        columns[field.name][: len(values)] = values[:count]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def study_facts(name: str) -> dict:
    parameters = {
        key: [str(part) for part in value] if isinstance(value, list) else str(value)
        for key, value in PARAMETERS.get(name, {}).items()
    }
    return {
        "statistic": name,
        "columns": columns_of(name),
        "parameters": parameters,
        "fields": fields_of(name),
        "edges": "all" if name == "mean" else "2n",
    }


def in_the_clear(here, report: dict) -> float | None:
    """Compute the statistic over the run's own E, from the pooled tables."""
    study = load_study_file(here.folder / "study.toml").study("coordinator")
    tables = pooled(study, [here.table(name) for name in here.names])
    firsts, records = report["first_class_by_node"], report["records_by_node"]
    classes = [(first, count - first) for first, count in zip(firsts, records, strict=True)]
    return exact_value(study, tables, edges_of(study, bytes.fromhex(report["joint_seed"]), classes))
