"""How often a test rejects a hypothesis that is false: power curves at a level of 5 %.

Each row is a true value of the statistic, each column an ε. Records are normal: correlated columns
for Kendall's tau, two classes that are shifted for the AUC, one shifted column for the signed rank.
The last column has no noise. The first row of each statistic is the hypothesis itself.

    python -m bench.power                     2,000 studies of each cell, 100 records
    python -m bench.power --picture FILE.png  also draw the curves, with matplotlib
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sin, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np

from bench.table import show
from bench.type_one import FINE, NullCase, Table, rejections

RUNS = 2_000
LEVEL = 0.05
QUIET = "1000000000"
"""At this ε there is no noise."""
EPSILONS = ("0.5", "1", "2", "8", QUIET)
VALUES = {
    "kendall_tau": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4),
    "auc": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8),
    "wilcoxon_signed_rank": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8),
}
"""Statistic → the true values of its curve; the first is its hypothesis."""
SCALE = FINE / 16
"""The steps of a field in one standard deviation."""


@dataclass(frozen=True)
class FalseCase(NullCase):
    """One statistic over normal records for which it has another value than its hypothesis says."""

    truth: float = 0.0

    def table(self, rng: np.random.Generator, runs: int) -> Table:
        shape = (runs, self.records)
        first, second = rng.normal(size=(2, *shape))
        if self.statistic == "kendall_tau":
            correlation = sin(pi * self.truth / 2)  # Greiner 1909
            second = correlation * first + sqrt(1 - correlation**2) * second
            return {"x": steps(first), "y": steps(second)}
        shift = NormalDist().inv_cdf(self.truth)
        if self.statistic == "auc":
            first[:, : self.first] += sqrt(2) * shift
            return {"x": steps(first)}
        return {"z": steps(first + shift / sqrt(2)) - FINE // 2}


def steps(values: np.ndarray) -> np.ndarray:
    """Normal values in steps of a field, with its middle at 0."""
    return np.clip(np.rint(values * SCALE) + FINE // 2, 0, FINE - 1).astype(np.int64)


def curves(statistic: str, runs: int, seed: int) -> list[list[float]]:
    """The shares of rejected studies: a row for each true value, a column for each ε."""
    rng = np.random.default_rng([seed, *statistic.encode()])
    values = VALUES[statistic]
    totals = np.concatenate(
        [FalseCase(statistic, "1", truth=value).totals(rng, runs) for value in values]
    )
    found = []
    for epsilon in EPSILONS:
        case = FalseCase(statistic, epsilon)
        noisy = totals + case.noise(rng, len(totals))
        found.append(rejections(case, noisy, LEVEL).reshape(len(values), runs).mean(axis=1))
    return np.stack(found, axis=1).tolist()


def draw(found: dict[str, list[list[float]]], path: Path) -> None:
    """A picture of all curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for place, (statistic, rows) in enumerate(found.items(), 1):
        axes = figure.add_subplot(1, len(found), place)
        for epsilon, shares in zip(EPSILONS, zip(*rows, strict=True), strict=True):
            axes.plot(VALUES[statistic], shares, marker=".", label=named(epsilon))
        axes.axhline(LEVEL, color="grey", linestyle=":")
        axes.set(title=statistic, xlabel="true value", ylim=(0, 1.02))
    figure.axes[0].set_ylabel("share of studies that reject")
    figure.axes[0].legend(fontsize="small", loc="upper left")
    figure.savefig(path, dpi=110)


def named(epsilon: str) -> str:
    return "no noise" if epsilon == QUIET else f"ε = {epsilon}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.power", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="Studies of each cell.")
    parser.add_argument("--only", nargs="*", default=tuple(VALUES), help="Statistics.")
    parser.add_argument("--picture", type=Path, help="A file for the picture.")
    parser.add_argument("--seed", type=int, default=18)
    given = parser.parse_args(arguments)
    found = {name: curves(name, given.runs, given.seed) for name in given.only}
    rows = [
        [statistic, f"{value:g}", *(f"{share:.1%}" for share in shares)]
        for statistic, powers in found.items()
        for value, shares in zip(VALUES[statistic], powers, strict=True)
    ]
    columns = ["statistic", "true value", *map(named, EPSILONS)]
    show(f"Rejections at {LEVEL:.0%} in {given.runs:,} studies a cell", columns, rows)
    if given.picture:
        draw(found, given.picture)


if __name__ == "__main__":
    main()
