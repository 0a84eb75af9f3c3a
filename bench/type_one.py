"""How often a test rejects a hypothesis that is true: the p-values of `umpc/inference`.

A test at level α may reject in at most α of all studies. Each row is a statistic at one ε, over new
records in every study for which its hypothesis is true, with noise of the exact law. The columns of
levels are the shares of studies that reject. The last column is how far the worst of them is above
its level, in standard errors of the simulation; it is due below 3.

    python -m bench.type_one                          10,000 studies of each row
    python -m bench.type_one --runs 1000 --edges 2n   over sampled sets
    python -m bench.type_one --ties 5                 columns of five values
    python -m bench.type_one --records 5 8 12 --epsilons 1000000000     few records, no noise
    python -m bench.type_one --only uniformity --records 20 --cells 50  sparse cells
    python -m bench.type_one --only auc_difference --opposed            scores that disagree

The whole table takes a few minutes. `power.py` asks the same of false hypotheses.
No one has proved a bound for tau* with ties; `--ties` tries it.

*Differences* have no null law, but a bound of their variance that the same study releases. Two
scores are equally good here. Usually they agree on most pairs. With `--opposed` either one is right
on one half of the records and wrong on the other half, where the other score is the other way
round: the largest variance.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from bench.clear_studies import (
    COLUMNS,
    DEALER,
    NODES,
    all_sets,
    laplace,
    study_of,
    totals_by_kernel,
)
from bench.order_patterns import totals_by_order
from bench.table import show
from umpc.crypto.prg import Stream
from umpc.inference.hypotheses import HYPOTHESES
from umpc.inference.null_laws import GREATER, LESS, TWO_SIDED, NormalLaw, p_value
from umpc.inference.report_inference import MISSED, Inference
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.settings import UMpcSettings, sum_reports
from umpc.study.cost import NO_COST, Measured
from umpc.study.document import Study
from umpc.study.making_report import report_of
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.ustat.error_law import ErrorLaw
from umpc.ustat.sampling import balanced, biregular
from umpc.ustat.statistics import LIBRARY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = dict[str, Ints]
"""Field → (runs, records) values."""

RUNS = 10_000
EPSILONS = ("0.5", "2", "8")
LEVELS = (0.1, 0.05, 0.01)
RECORDS = {1: 100, 2: 100, 3: 30, 4: 24}
"""Records by the size of a set."""
FINE = 1 << 20
"""The values of a column without ties."""
CELLS = 10
GRID = 12
"""Sums of both parts of a difference for which critical values are computed."""
HALVINGS = 26
"""Steps of the search for a critical value; its relative error is then 2^-26."""
AT_ONCE = 1 << 19
STATISTICS = (
    "kendall_tau",
    "kendall_tau_b",
    "goodman_kruskal_gamma",
    "phi_coefficient",
    "auc",
    "auc_private",
    "wilcoxon_signed_rank",
    "spearman_rho",
    "triples_skewness",
    "bergsma_dassios_tau_star",
    "uniformity",
    "auc_difference",
    "auc_difference_public",
    "tau_difference",
    "concordance_difference",
)
BY_ORDER = (
    "kendall_tau",
    "kendall_tau_b",
    "goodman_kruskal_gamma",
    "spearman_rho",
    "bergsma_dassios_tau_star",
)
"""Rank statistics of two columns: a table of all orders gives their kernels."""


@dataclass(frozen=True)
class NullCase:
    """One statistic over records for which its hypothesis is true.

    values: of each column. edges: "all", "2n" or a number. many: the records, or 0 for `RECORDS`.
    cells: of uniformity. opposed: whether two scores disagree.
    """

    statistic: str
    epsilon: str
    edges: str = "all"
    values: int = FINE
    many: int = 0
    cells: int = CELLS
    opposed: bool = False

    @cached_property
    def records(self) -> int:
        return self.many or RECORDS[LIBRARY[self.statistic].degree]

    @cached_property
    def first(self) -> int:
        """The records of the first class, in two-sample studies."""
        return self.records * 2 // 5 if self.study.two_sample else 0

    @cached_property
    def study(self) -> Study:
        half = self.values // 2
        fields = {
            "x": FieldText("x", "0", str(self.values - 1), whole=True),
            "y": FieldText("y", "0", str(self.values - 1), whole=True),
            "z": FieldText("z", str(-half), str(half), whole=True),
            "positive": FieldText.of_categories("positive", ["0", "1"]),
            "group": FieldText.of_categories("group", ["0", "1"]),
            "cell": FieldText("cell", "0", str(self.cells - 1), whole=True),
        }
        for name in ("score_a", "score_b"):
            fields[name] = FieldText(name, "0", str(self.values - 1), whole=True)
        settings = UMpcSettings(edges=self.edges, dealer=DEALER)
        parameters = {"cells": self.cells} if self.statistic == "uniformity" else {}
        return study_of(
            self.statistic,
            fields,
            settings,
            epsilon=self.epsilon,
            max_colluding=2,
            parameters=parameters,
        )

    @cached_property
    def sizes(self) -> Sizes:
        return Sizes(self.study, self.records, self.first, len(NODES))

    def table(self, rng: np.random.Generator, runs: int) -> Table:
        """Records of so many studies: (runs, records) each."""
        shape, half = (runs, self.records), self.values // 2
        draws: dict[str, Callable[[], Ints]] = {
            "x": lambda: rng.integers(0, self.values, shape),
            "y": lambda: rng.integers(0, self.values, shape),
            "z": lambda: rng.integers(-half, half, shape, endpoint=True),
            "positive": lambda: (rng.random(shape) < 0.7).astype(np.int64),
            "group": lambda: (rng.random(shape) < 0.4).astype(np.int64),
            "cell": lambda: rng.integers(0, self.cells, shape),
        }
        names = COLUMNS[self.statistic]
        found = {name: draws[name]() for name in names if name in draws}
        if "score_a" in names:
            found |= self.scores(rng, found, shape)
        return {name: found[name] for name in names}

    def scores(self, rng: np.random.Generator, found: Table, shape: tuple[int, int]) -> Table:
        """Two scores that are equally good at the order of the other columns."""
        by_time = self.statistic == "concordance_difference"
        if self.study.two_sample:
            due = np.broadcast_to(np.arange(self.records) < self.first, shape).astype(np.float64)
        elif "x" in found:
            due = (0.5 - found["x"] / self.values) * (4.0 if by_time else -4.0)
        else:
            due = found["positive"].astype(np.float64)
        if self.opposed:
            side = rng.choice([-1.0, 1.0], shape)
            both = [due * side, -due * side]
            spread = 0.01
        else:
            both, spread = [due + rng.normal(size=shape)] * 2, 0.7
        top = self.values - 1
        values = [(each + spread * rng.normal(size=shape)) / 16 + 0.5 for each in both]
        units = [np.clip(np.rint(each * top), 0, top).astype(np.int64) for each in values]
        return {"score_a": units[0], "score_b": units[1]}

    def sets(self, rng: np.random.Generator) -> Ints:
        """E, (edges, k). Records are exchangeable, so one E serves all studies."""
        if self.edges == "all":
            return all_sets(self.study, self.records, self.first)
        words = Stream(rng.bytes(32)).words
        if self.study.two_sample:
            second = self.records - self.first
            offsets = np.array([0, self.first])
            return biregular(self.first, second, self.sizes.edges, words) + offsets
        return balanced(self.records, self.sizes.edges, words, self.study.degree)

    def totals(self, rng: np.random.Generator, runs: int) -> Ints:
        """The sums of so many studies without noise, in units: (runs, sums)."""
        sets = self.sets(rng)
        if self.statistic in BY_ORDER:
            return totals_by_order(self.study, self.table(rng, runs), sets)
        each = max(1, AT_ONCE // len(sets))
        sizes = [min(each, runs - start) for start in range(0, runs, each)]
        parts = [totals_by_kernel(self.study, self.table(rng, many), sets) for many in sizes]
        return np.concatenate(parts)

    def noise(self, rng: np.random.Generator, runs: int) -> Ints:
        """The noise of so many studies, in units: (runs, sums)."""
        laws = noise_of_sums(self.sizes)
        return np.stack(
            [laplace(rng, float(law.log_ratio), law.shape, runs) for law in laws], axis=1
        )

    def report(self, totals: Sequence[int]) -> Report:
        """A study's report, as its coordinator makes it."""
        sums = sum_reports(self.sizes, totals, noise_of_sums(self.sizes))
        return report_of(self.study, sums, self.sizes, self.study.exact_delta, Measured(), NO_COST)


def rejected(case: NullCase, noisy: Ints, levels: Sequence[float]) -> list[float]:
    """The share of studies that the usual test rejects, at each level."""
    return [float(rejections(case, noisy, level).mean()) for level in levels]


def rejections(case: NullCase, noisy: Ints, level: float) -> NDArray[np.bool_]:
    """Whether the usual test rejects each study: (runs,).

    The law of the errors is the same in all studies, so p-values follow from the released
    combination alone, and they fall with its distance from 0.

    Args: noisy: the sums of each study, (runs, sums), in units.
    """
    hypothesis = HYPOTHESES[case.statistic]
    if hypothesis.law is None:
        return rejections_with_end(case, noisy, level)
    inference = Inference(case.report([int(total) for total in noisy.mean(axis=0)]))
    law, errors = inference.null_law(hypothesis)
    units = np.array([float(kernel.unit) for kernel in case.study.parsed_kernels])
    seen = noisy * units / case.sizes.edges @ np.array(hypothesis.weights) - hypothesis.constant
    sides = [GREATER] if hypothesis.alternative == GREATER else [GREATER, LESS]
    tail = level if hypothesis.alternative != TWO_SIDED else level / 2
    beyond = np.zeros(len(seen), dtype=np.bool_)
    for side in sides:

        def p_of(value: float, side: str = side) -> float:
            return p_value(law, errors, value, side)

        limit = critical(p_of, tail, 1 if side == GREATER else -1)
        beyond |= seen >= limit if side == GREATER else seen <= limit
    return beyond


def rejections_with_end(case: NullCase, noisy: Ints, level: float) -> NDArray[np.bool_]:
    """`rejections` of a difference, whose variance the released sums bound.

    The bound depends on both sums together, and the critical difference is interpolated in them.
    """
    units = np.array([float(kernel.unit) for kernel in case.study.parsed_kernels])
    means = noisy * units / case.sizes.edges
    together, seen = means[:, 0] + means[:, 1], np.abs(means[:, 0] - means[:, 1])
    grid = np.linspace(together.min(), together.max(), GRID)
    weights = HYPOTHESES[case.statistic].weights
    limits = []
    for both in grid:
        middle = [both / 2, both / 2, *means.mean(axis=0)[2:]]
        totals = np.rint(np.array(middle) / units * case.sizes.edges)
        found = Inference(case.report([int(total) for total in totals])).bounded(level)
        whole = found.law(weights, 0.0)
        law, errors = NormalLaw(0.0, whole.normal), replace(whole, normal=0.0)
        tail = (1 - MISSED) * level / 2

        def p_of(value: float, law: NormalLaw = law, errors: ErrorLaw = errors) -> float:
            return p_value(law, errors, value, GREATER)

        limits.append(critical(p_of, tail, 1))
    return np.asarray(seen >= np.interp(together, grid, limits), dtype=np.bool_)


def critical(p_of: Callable[[float], float], tail: float, sign: int) -> float:
    """The value nearest to 0 whose p-value is at most `tail`, on one side."""
    inside, outside = 0.0, 1e-6
    while p_of(sign * outside) > tail:
        inside, outside = outside, 2 * outside
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if p_of(sign * middle) > tail else (inside, middle)
    return sign * outside


def excess(share: float, level: float, runs: int) -> float:
    """How far a share is above its level, in standard errors."""
    return (share - level) / sqrt(level * (1 - level) / runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.type_one", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="Studies of each row.")
    parser.add_argument("--only", nargs="*", default=STATISTICS, help="Statistics.")
    parser.add_argument("--edges", default="all", help='"all", "2n" or a number.')
    parser.add_argument("--ties", type=int, default=FINE, help="The values of each column.")
    parser.add_argument(
        "--records", type=int, nargs="*", default=[0], help="In place of the usual."
    )
    parser.add_argument("--epsilons", nargs="*", default=EPSILONS)
    parser.add_argument("--cells", type=int, default=CELLS, help="The cells of uniformity.")
    parser.add_argument("--opposed", action="store_true", help="Two scores that disagree.")
    parser.add_argument("--seed", type=int, default=18)
    given = parser.parse_args()
    rows, worst = [], -np.inf
    for statistic, many in product(given.only, given.records):
        rng = np.random.default_rng([given.seed, *statistic.encode()])
        settings = (given.edges, given.ties, many, given.cells, given.opposed)
        totals = NullCase(statistic, "1", *settings).totals(rng, given.runs)
        for epsilon in given.epsilons:
            case = NullCase(statistic, epsilon, *settings)
            shares = rejected(case, totals + case.noise(rng, given.runs), LEVELS)
            most = max(excess(s, a, given.runs) for s, a in zip(shares, LEVELS, strict=True))
            worst = max(worst, most)
            cells = [f"{share:.2%}" for share in shares]
            rows.append([statistic, f"{case.records}", epsilon, *cells, f"{most:+.1f}"])
            print(" ".join(rows[-1]), flush=True)
    columns = ["statistic", "n", "epsilon", *(f"at {level:.0%}" for level in LEVELS), "excess"]
    show(f"Rejections of true hypotheses in {given.runs:,} studies a row", columns, rows)
    print(f"the largest excess is {worst:+.1f} standard errors; due below +3")


if __name__ == "__main__":
    main()
