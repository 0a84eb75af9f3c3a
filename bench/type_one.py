"""How often a test rejects a hypothesis that is true: the p-values of `umpc/inference`.

A test at level α may reject in at most α of all studies. Each row is a statistic at one ε, over new
records in every study for which its hypothesis is true, with noise of the exact law. The columns of
levels are the shares of studies that reject. The last column is how far the worst of them is above
its level, in standard errors of the simulation; it is due below 3.

    python -m bench.type_one                          10,000 studies of each row
    python -m bench.type_one --runs 1000 --edges 2n   over sampled sets
    python -m bench.type_one --ties 5                 columns of five values

No one has proved a bound for tau* with ties; `--ties` tries it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from bench.coverage import laplace
from bench.table import show
from umpc.crypto.prg import Stream
from umpc.inference.hypotheses import GREATER, HYPOTHESES, LESS, TWO_SIDED
from umpc.inference.report_inference import Inference, p_value
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.protocols.u_mpc.sums import sum_reports
from umpc.study.cost import NO_COST
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.study.report import Measured, Report, report_of
from umpc.study.sizes import Sizes
from umpc.ustat.combinations import every_subset
from umpc.ustat.sampling import balanced, biregular
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

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
AT_ONCE = 1 << 21
STATISTICS: Mapping[str, tuple[str, ...]] = {
    "kendall_tau": ("x", "y"),
    "kendall_tau_b": ("x", "y"),
    "goodman_kruskal_gamma": ("x", "y"),
    "phi_coefficient": ("positive", "label"),
    "auc": ("x",),
    "auc_private": ("x", "label"),
    "wilcoxon_signed_rank": ("z",),
    "spearman_rho": ("x", "y"),
    "triples_skewness": ("z",),
    "bergsma_dassios_tau_star": ("x", "y"),
    "uniformity": ("cell",),
}
PUBLIC = FieldText.of_categories("class", ["case", "control"], public=True)
NODES = tuple(Participant(f"node-{number}", f"node-{number}:1") for number in range(3))


@dataclass(frozen=True)
class NullCase:
    """One statistic over records for which its hypothesis is true.

    values: of each column. edges: "all", "2n" or a number.
    """

    statistic: str
    epsilon: str
    edges: str = "all"
    values: int = FINE

    @cached_property
    def records(self) -> int:
        return RECORDS[LIBRARY[self.statistic].degree]

    @cached_property
    def first(self) -> int:
        """The records of the first class, in two-sample studies."""
        return self.records * 2 // 5 if self.study.two_sample else 0

    @cached_property
    def study(self) -> Study:
        found = LIBRARY[self.statistic]
        columns = STATISTICS[self.statistic]
        parameters = {"cells": CELLS} if self.statistic == "uniformity" else {}
        half = self.values // 2
        fields = {
            "x": FieldText("x", "0", str(self.values - 1), whole=True),
            "y": FieldText("y", "0", str(self.values - 1), whole=True),
            "z": FieldText("z", str(-half), str(half), whole=True),
            "label": FieldText.of_categories("label", ["0", "1"]),
            "positive": FieldText.of_categories("positive", ["0", "1"]),
            "cell": FieldText("cell", "0", str(CELLS - 1), whole=True),
        }
        public = (PUBLIC,) if found.sampling == "two_sample" else ()
        return Study(
            name="null",
            statistic=found.name,
            kernels=tuple(map(to_text, found.expressions(columns, parameters))),
            fields=(*(fields[name] for name in columns), *public),
            epsilon=self.epsilon,
            max_colluding=2,
            coordinator="coordinator",
            nodes=NODES,
            degree=found.degree,
            estimator=found.estimator,
            sampling=found.sampling,
            settings=UMpcSettings(edges=self.edges, dealer=Participant("dealer", "dealer:1")),
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
            "label": lambda: (rng.random(shape) < 0.4).astype(np.int64),
            "positive": lambda: (rng.random(shape) < 0.7).astype(np.int64),
            "cell": lambda: rng.integers(0, CELLS, shape),
        }
        return {name: draws[name]() for name in STATISTICS[self.statistic]}

    def sets(self, rng: np.random.Generator) -> Ints:
        """E, (edges, k). Records are exchangeable, so one E serves all studies."""
        words = Stream(rng.bytes(32)).words
        if self.study.two_sample:
            second = self.records - self.first
            if self.edges != "all":
                offsets = np.array([0, self.first])
                return biregular(self.first, second, self.sizes.edges, words) + offsets
            pairs = np.meshgrid(np.arange(self.first), np.arange(second) + self.first)
            return np.stack(pairs, axis=-1).reshape(-1, 2)
        if self.edges == "all":
            return every_subset(self.records, self.study.degree)
        return balanced(self.records, self.sizes.edges, words, self.study.degree)

    def totals(self, rng: np.random.Generator, runs: int) -> Ints:
        """The sums of so many studies without noise, in units: (runs, sums)."""
        sets = self.sets(rng)
        parts = []
        for start in range(0, runs, each := max(1, AT_ONCE // len(sets))):
            count = min(each, runs - start)
            table = self.table(rng, count)
            places = [
                {name: values[:, column].reshape(-1) for name, values in table.items()}
                for column in sets.T
            ]
            found = [kernel.evaluate(places) for kernel in self.study.parsed_kernels]
            shape = (count, len(sets))
            flat = [np.broadcast_to(each, count * len(sets)).reshape(shape) for each in found]
            parts.append(np.stack([each.sum(axis=1) for each in flat], axis=1))
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
    """The share of studies that the usual test rejects, at each level.

    The law of the errors is the same in all studies, so p-values follow from the released
    combination alone, and they fall with its distance from 0.
    """
    hypothesis = HYPOTHESES[case.statistic]
    inference = Inference(case.report([int(total) for total in noisy.mean(axis=0)]))
    law, errors = inference.null_law(hypothesis)
    units = np.array([float(kernel.unit) for kernel in case.study.parsed_kernels])
    seen = noisy * units / case.sizes.edges @ np.array(hypothesis.weights) - hypothesis.constant
    sides = [GREATER] if hypothesis.alternative == GREATER else [GREATER, LESS]
    shares = []
    for level in levels:
        beyond = np.zeros(len(seen), dtype=bool)
        for side in sides:
            tail = level if hypothesis.alternative != TWO_SIDED else level / 2

            def p_of(value: float, side: str = side) -> float:
                return p_value(law, errors, value, side)

            limit = critical(p_of, tail, 1 if side == GREATER else -1)
            beyond |= seen >= limit if side == GREATER else seen <= limit
        shares.append(float(beyond.mean()))
    return shares


def critical(p_of: Callable[[float], float], tail: float, sign: int) -> float:
    """The value nearest to 0 whose p-value is at most `tail`, on one side."""
    inside, outside = 0.0, 1e-6
    while p_of(sign * outside) > tail:
        inside, outside = outside, 2 * outside
    for _ in range(40):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if p_of(sign * middle) > tail else (inside, middle)
    return sign * outside


def excess(share: float, level: float, runs: int) -> float:
    """How far a share is above its level, in standard errors."""
    return (share - level) / sqrt(level * (1 - level) / runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.type_one", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="Studies of each row.")
    parser.add_argument("--only", nargs="*", default=list(STATISTICS), help="Statistics.")
    parser.add_argument("--edges", default="all", help='"all", "2n" or a number.')
    parser.add_argument("--ties", type=int, default=FINE, help="The values of each column.")
    parser.add_argument("--seed", type=int, default=18)
    given = parser.parse_args()
    rows, worst = [], -np.inf
    for statistic in given.only:
        rng = np.random.default_rng([given.seed, *statistic.encode()])
        totals = NullCase(statistic, "1", given.edges, given.ties).totals(rng, given.runs)
        for epsilon in EPSILONS:
            case = NullCase(statistic, epsilon, given.edges, given.ties)
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
