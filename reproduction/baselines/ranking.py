"""A linear ranking of who subscribes, learnt privately from pairs of the bank data's records.

A trusted curator runs DP-SGD on the pairwise logistic loss (`dpsgd.py`) over every second record of
the bank data. The ranking's AUC is computed on the other records in the clear, because nothing in
the test half is private here. Values beyond `BOUNDS` count as the bound, and all are scaled so that
two records are at most 1 apart. `BOUNDS` and `SGD` were chosen by looking at results on this very
table. So they are an example and not a private choice; a real study fixes them beforehand.

    python -m reproduction.baselines.ranking --epsilon 1/2 1 4 --runs 5
    python -m reproduction.baselines.ranking --csv other.csv --delimiter ';' --label y=yes

`--csv` takes any table with these columns. Without the bank data the command takes a made-up table
of its size, and says so.
"""

from __future__ import annotations

import argparse
import csv
import secrets
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np

from bench.harness import BANK, RECORDS
from bench.table import show
from reproduction.baselines.cost import dpsgd_cost
from reproduction.baselines.dpsgd import PairwiseSgd, calibrate_noise, pairwise_risk

BOUNDS = {
    "age": (18, 95),
    "balance": (-1000, 5000),
    "duration": (0, 1000),
    "campaign": (1, 10),
    "previous": (0, 10),
}
"""Feature → its lower and upper bound."""
SGD = {"steps": 100, "pairs": 8, "clip": Fraction(1, 8), "radius": Fraction(40)}
NO_NOISE = Fraction(1, 1 << 20)


def read(path: Path, delimiter: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The features as in the file, (n, 5), and (n,) bool: whether a record has the label."""
    column, _, first = label.partition("=")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    return np.array([[float(row[name]) for name in BOUNDS] for row in rows]), np.array(
        [r[column] == first for r in rows]
    )


def made_up() -> tuple[np.ndarray, np.ndarray]:
    """Uniform features of the bank data's size, and labels.

    Duration, the number of calls and noise decide the label.
    """
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.uniform(*bounds, RECORDS) for bounds in BOUNDS.values()])
    return x, scaled(x) @ [0, 0, 2, -1, 1] + rng.normal(0, 0.2, RECORDS) > 0.9


def scaled(x: np.ndarray) -> np.ndarray:
    low, high = np.array(list(BOUNDS.values()), dtype=float).T
    return (np.clip(x, low, high) - low) / (high - low) / np.sqrt(len(BOUNDS))


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The share of pairs of both classes in the right order. Floats have no ties here."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    count = int(positive.sum())
    return float(
        (ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count))
    )


def line(epsilon: Fraction | None, delta: Fraction, halves: Sequence, runs: int) -> tuple[str, ...]:
    """One line of the table: an ε, its noise, and the results of several runs."""
    (x, y), (others, labels) = halves
    n, batch = len(x), len(x) // 2
    noise = calibrate_noise(epsilon, delta, n, batch, SGD["steps"]) if epsilon else NO_NOISE
    sgd = PairwiseSgd(n, batch, noise=noise, **SGD)
    found = [sgd.fit(x, y.astype(int), secrets.randbits) for _ in range(runs)]
    aucs = [auc(others @ theta, labels) for theta in found]
    risk = pairwise_risk(found[0], others, labels.astype(int), sgd.loss)
    return (
        f"{float(epsilon):g}" if epsilon else "none",
        f"{float(noise):.2f}" if epsilon else "0",
        f"{median(aucs):.3f}",
        f"{min(aucs):.3f} to {max(aucs):.3f}",
        f"{risk:.4f}",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.baselines.ranking", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--epsilon",
        nargs="+",
        type=Fraction,
        default=[Fraction(1, 2), Fraction(1), Fraction(4)],
        help="one line of the table for each",
    )
    parser.add_argument("--delta", type=Fraction, default=Fraction(1, 10**6))
    parser.add_argument("--runs", type=int, default=5, help="training runs of each line")
    parser.add_argument("--csv", type=Path, default=BANK, help="a table with the same columns")
    parser.add_argument("--delimiter", default=";")
    parser.add_argument(
        "--label",
        default="y=yes",
        metavar="COLUMN=FIRST",
        help="the label's column, and the value of the records to rank first",
    )
    given = parser.parse_args(arguments)
    if given.csv.exists():
        (x, y), source = read(given.csv, given.delimiter, given.label), given.csv.name
    else:
        (x, y), source = made_up(), "a made-up table"
    halves = [(scaled(x[start::2]), y[start::2]) for start in (0, 1)]
    rows = [line(epsilon, given.delta, halves, given.runs) for epsilon in (*given.epsilon, None)]
    n, runs = len(halves[0][0]), f"{given.runs} run{'s' if given.runs > 1 else ''}"
    title = f"{source}: logistic loss of pairs, {n:,} records, δ = {float(given.delta):g}, {runs}"
    columns = ("ε", "noise z", "AUC of the others, median", "range", "risk, one run")
    show(title, columns, rows)
    sgd = PairwiseSgd(n, n // 2, noise=Fraction(1), **SGD)
    cost = dpsgd_cost(sgd, len(BOUNDS))
    operations = f"{cost.coordinator_operations:,} operations"
    print(f"{cost.message_bytes:,} bytes to the curator, once; {operations}")


if __name__ == "__main__":
    main()
