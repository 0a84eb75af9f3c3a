"""How often intervals for a population hold its value: `variance = "private"` beside `"largest"`.

A simulated study draws new records from a population whose value is known, evaluates all triples
(or pairs) in the clear, and adds noise of the exact law. Each row is a population, a number of
records and an ε. The columns are the share of 95 % intervals that hold the value, and half their
mean length, for both settings; and 1.96 standard deviations of the statistic without noise, which
is the shortest that any interval for the population can be.

    python -m bench.population              200 studies of each row, in a few minutes
    python -m bench.population --runs 50 --records 4000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, pi, sin, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bench.clear_studies import DEALER, laplace, study_of
from bench.table import show
from umpc.coordinator.studyfile_entries import with_variance
from umpc.inference.report_inference import POPULATION, Inference
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.settings import UMpcSettings, sum_reports
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.making_report import report_of
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.study.sizes import Sizes

Floats = NDArray[np.float64]

RUNS = 200
RECORDS = (200, 1000)
EPSILONS = ("1", "4")
FIELDS = {name: FieldText(name, "-1000000", "1000000", whole=True) for name in "xyz"}


def _signs(values: Floats) -> Floats:
    return np.sign(values[:, None] - values[None, :])


def _normal_tau(truth: float) -> Callable[[np.random.Generator, int], Floats]:
    correlation = sin(pi * truth / 2)  # Greiner 1909

    def pairs(rng: np.random.Generator, records: int) -> Floats:
        first, other = rng.normal(size=(2, records))
        second = correlation * first + sqrt(1 - correlation**2) * other
        return _signs(first) * _signs(second)

    return pairs


def _two_lines(truth: float) -> Callable[[np.random.Generator, int], Floats]:
    """Records on y = x, and the others on y = 1 − x: pairs of one of each kind have the mean 0."""

    def pairs(rng: np.random.Generator, records: int) -> Floats:
        first = rng.random(records)
        rises = rng.random(records) < (1 + truth) / 2
        return _signs(first) * _signs(np.where(rises, first, 1 - first))

    return pairs


def _shifted(truth: float) -> Callable[[np.random.Generator, int], Floats]:
    shift = NormalDist().inv_cdf(truth) / sqrt(2)

    def pairs(rng: np.random.Generator, records: int) -> Floats:
        values = rng.normal(size=records) + shift
        found = (values[:, None] + values[None, :] > 0).astype(np.float64)
        np.fill_diagonal(found, 0)
        return found

    return pairs


@dataclass(frozen=True)
class Population:
    """A law of records. pairs: the kernel's values of all pairs, with zeros on the diagonal."""

    name: str
    statistic: str
    truth: float
    pairs: Callable[[np.random.Generator, int], Floats]


POPULATIONS = (
    Population("tau, independent", "kendall_tau", 0.0, _normal_tau(0.0)),
    Population("tau, normal", "kendall_tau", 0.5, _normal_tau(0.5)),
    Population("tau, two lines", "kendall_tau", 0.5, _two_lines(0.5)),
    Population("signed rank, normal", "wilcoxon_signed_rank", 0.7, _shifted(0.7)),
)


@dataclass(frozen=True)
class PopulationCase:
    """Studies of one population over all sets of so many records."""

    population: Population
    records: int
    epsilon: str

    @cached_property
    def pairs(self) -> Study:
        settings = UMpcSettings(edges="all", dealer=DEALER)
        return study_of(
            self.population.statistic, FIELDS, settings, epsilon=self.epsilon, max_colluding=2
        )

    @cached_property
    def triples(self) -> Study:
        study = self.pairs
        keys = ("statistic", "kernels", "degree", "estimator", "sampling")
        entries = {key: getattr(study, key) for key in keys}
        changed, split = with_variance(entries, study.parsed_kernels[0].expression, None)
        return study.replaced(**changed, split=split)

    def intervals(self, rng: np.random.Generator, means: Floats) -> tuple[Floats, Floats]:
        """The intervals of private and of largest variance: (runs, 2) each.

        Args: means: (runs, 2) of `means_of`.
        """
        private = self._intervals(rng, self.triples, means)
        return private, self._intervals(rng, self.pairs, means[:, :1])

    def _intervals(self, rng: np.random.Generator, study: Study, means: Floats) -> Floats:
        sizes = Sizes(study, self.records, 0, len(study.nodes))
        laws = noise_of_sums(sizes)
        units = np.array([float(kernel.unit) for kernel in study.parsed_kernels])
        noises = [laplace(rng, float(law.log_ratio), law.shape, len(means)) for law in laws]
        noisy = means + np.stack(noises, axis=1) * units / sizes.edges
        sums = sum_reports(sizes, [0] * len(laws), laws)
        report = report_of(study, sums, sizes, study.exact_delta, Measured())
        return np.array([_interval(report, row) for row in noisy.tolist()])


def _interval(report: Report, means: list[float]) -> tuple[float, float]:
    sums = [replace(entry, mean=mean) for entry, mean in zip(report.sums, means, strict=True)]
    found = Inference(replace(report, sums=sums, estimate=means[0])).interval(kind=POPULATION)
    return found.low, found.high


def means_of(pairs: Floats) -> tuple[float, float]:
    """The means of both sums over all triples, from the kernel's values of all pairs.

    Args: pairs: (records, records), symmetric, with zeros on the diagonal.
    """
    records = len(pairs)
    sums = pairs.sum(axis=1)
    second = float((sums**2 - (pairs**2).sum(axis=1)).sum()) / 6
    return float(sums.sum()) / 2 / comb(records, 2), second / comb(records, 3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.population", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="Studies of each row.")
    parser.add_argument("--records", type=int, nargs="*", default=RECORDS)
    parser.add_argument("--seed", type=int, default=59)
    given = parser.parse_args()
    rows = []
    for number, population in enumerate(POPULATIONS):
        for records in given.records:
            rng = np.random.default_rng([given.seed, number, records])
            drawn = (population.pairs(rng, records) for _ in range(given.runs))
            means = np.array([means_of(pairs) for pairs in drawn])
            for epsilon in EPSILONS:
                case = PopulationCase(population, records, epsilon)
                cells = [population.name, f"{population.truth:g}", f"{records:,}", epsilon]
                for found in case.intervals(rng, means):
                    cells += [f"{covered(found, population.truth):.1%}", f"{half(found):.3f}"]
                rows.append([*cells, f"{1.96 * means[:, 0].std():.3f}"])
                print(" ".join(rows[-1]), flush=True)
    columns = ["population", "value", "n", "epsilon", "private", "half", "largest", "half"]
    show(f"{given.runs:,} intervals of 95 % a row", [*columns, "without noise"], rows)


def covered(intervals: Floats, truth: float) -> float:
    """The share of intervals that hold the value. Args: intervals: (runs, 2)."""
    return float(((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).mean())


def half(intervals: Floats) -> float:
    """Half the mean length. Args: intervals: (runs, 2)."""
    return float((intervals[:, 1] - intervals[:, 0]).mean()) / 2


if __name__ == "__main__":
    main()
