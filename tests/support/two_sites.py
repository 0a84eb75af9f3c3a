"""The records of two sites that Python, R and `umpc demo` are compared on.

`python -m tests.support.two_sites` writes them into the R package, with the numbers that all three
must find: clients/r/inst/extdata. It also writes a report of counts that R's tests read:
clients/r/tests/testthat/counts.json.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

import umpc
from tests.support.released_tables import lung

PACKAGE = Path(umpc.__file__).parents[1] / "clients" / "r"
FOLDER = PACKAGE / "inst" / "extdata"
COUNTS = PACKAGE / "tests" / "testthat" / "counts.json"
SEED = 18
SITES = {"north": 18, "south": 14}
"""Site → its records."""
COLUMNS = ("age", "balance")
BOUNDS = {"age": (0, 127), "balance": (-10000, 110000, "0.01")}
LOUD = 10**9
"""At this ε the noise is 0."""
KINDS = ("noise", "records", "population", "hoeffding")


def records() -> dict[str, dict[str, list]]:
    """Site → column → values. No two values of a column of numbers are equal."""
    rng = np.random.default_rng(SEED)
    count = sum(SITES.values())
    age = rng.permutation(np.arange(20, 90))[:count]
    balance = np.round(40 * age + rng.normal(0, 900, count), 2)
    days = rng.permutation(np.arange(1, 400))[:count]
    died = np.where(rng.random(count) < 0.7, "yes", "no")
    group = np.where(np.arange(count) % 5 < 2, "case", "control")
    found = {"age": age, "balance": balance, "days": days, "died": died, "group": group}
    ends = dict(zip(SITES, np.cumsum(list(SITES.values())), strict=True))
    return {
        site: {name: values[end - SITES[site] : end].tolist() for name, values in found.items()}
        for site, end in ends.items()
    }


def numbers(document: dict) -> dict:
    """The numbers of a report's JSON document that all clients show."""
    intervals = {each["kind"]: each for each in document["inference"]["intervals"]}
    return {
        "estimate": document["estimate"],
        "p_value": document["inference"]["test"]["p_value"],
        **{kind: [intervals[kind]["low"], intervals[kind]["high"]] for kind in KINDS},
    }


def estimated() -> umpc.Result:
    """Kendall's tau over all pairs of both sites, without noise."""
    return umpc.estimate(
        "kendall_tau", records(), COLUMNS, bounds=BOUNDS, epsilon=LOUD, edges="all"
    )


def survival() -> umpc.Result:
    """R's lung at two sites: survival in two groups of age, with noise."""
    data = {name: values.tolist() for name, values in lung().items()}
    half = len(data["time"]) // 2
    return umpc.estimate(
        "kaplan_meier",
        [
            {name: values[part] for name, values in data.items()}
            for part in (slice(half), slice(half, None))
        ],
        ["time", "event", "age"],
        bounds={"time": (0, 1099, 1), "event": (0, 1, 1), "age": (30, 90, 1)},
        bins={"time": list(range(100, 1099, 100)), "age": [65]},
        epsilon=2,
    )


def stored(site: str) -> dict[str, list[str]]:
    """A site's file: column → texts."""
    with (FOLDER / f"{site}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def main() -> None:
    for site, columns in records().items():
        with (FOLDER / f"{site}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    text = json.dumps(numbers(estimated().to_dict()), indent=2)
    (FOLDER / "expected.json").write_text(text + "\n", encoding="utf-8")
    COUNTS.write_text(json.dumps(survival().to_dict()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
