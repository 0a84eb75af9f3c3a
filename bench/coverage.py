"""How often the first interval of a report holds the statistic: `python -m bench.coverage`.

A simulated study draws E with the sampler and the noise from its law, evaluates the kernels in the
clear, and makes the released means and the interval of a report from them. The table stays; E and
the noise are new in every study. `--runs` studies are made for each statistic, protocol and size of
E. The columns are the share of intervals that hold the value on all sets, as low ≤ value ≤ high;
the share of intervals of the noise alone that hold it; and half the interval's mean length in
standard deviations of the estimate (1.96 for a normal error whose law is known).

The last cases have 20 records of which one pair is equal, and noise below one count. A study then
sees the pair once or not at all, which is the rarest kernel that there is.

A value is withheld where a denominator drowns; such studies are counted beside. Each study makes
the report's own interval: 2,000 studies of all cases take hours, and `--runs 200` takes a tenth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from bench.clear_studies import (
    DEALER,
    NODES,
    all_sets,
    laplace,
    study_of,
    totals_by_kernel,
)
from bench.table import show
from umpc.crypto.prg import Stream
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.settings import UMpcSettings, sum_reports
from umpc.study.document import Study
from umpc.study.making_report import estimated
from umpc.study.parts import FieldText
from umpc.study.sizes import Sizes
from umpc.ustat.estimators import estimate
from umpc.ustat.sampling import balanced, biregular, matchings, pairings_of
from umpc.ustat.statistics import LIBRARY
from umpc_papers.bell_2pc.noise_binding import noise_of_pairs
from umpc_papers.bell_2pc.settings import BellTwoPcSettings

RUNS = 2000
RECORDS = 60
FIRST = 24
"""Records of the first class, where there are classes."""
EPSILON = "4"
RARE = "duplicate_pair_ratio"
"""The statistic of the table with one equal pair."""
RARE_RECORDS, RARE_EPSILON, RARE_EDGES = 20, "50", ("1n", "2n", "150")
STATISTICS = (
    "kendall_tau",
    "kendall_tau_b",
    "goodman_kruskal_gamma",
    "gini_mean_difference",
    "covariance",
    "wilcoxon_signed_rank",
    "renyi_entropy",
    "auc",
    "auc_private",
    "spearman_rho",
)
EDGES = {"u-mpc": ("1n", "2n", "10n"), "bell-2pc": ("1p", "2p", "2n")}
TWO_SAMPLE_EDGES = ("40", "2n", "10n")
FIELDS = {
    "x": FieldText("x", "0", "40", whole=True),
    "y": FieldText("y", "1", "5", whole=True),
    "z": FieldText("z", "-10", "30", whole=True),
    "positive": FieldText("positive", "0", "1", whole=True),
    "rare": FieldText("rare", "0", "199", whole=True),
}
LABEL = FieldText.of_categories("label", ["case", "control"], public=True)


@dataclass(frozen=True)
class Case:
    """One statistic by one protocol over one size of E."""

    study: Study
    records: int = RECORDS
    first: int = FIRST

    @property
    def sizes(self) -> Sizes:
        return Sizes(
            self.study, self.records, self.first if self.study.two_sample else 0, len(NODES)
        )


def cases(names: Sequence[str] = STATISTICS) -> Iterator[Case]:
    """All cases of these statistics."""
    for name in names:
        for protocol, rules in EDGES.items():
            statistic = LIBRARY[name]
            if protocol == "bell-2pc" and statistic.degree != 2:
                continue
            for rule in TWO_SAMPLE_EDGES if statistic.sampling == "two_sample" else rules:
                yield Case(proposed(name, protocol, rule))


def rare_cases() -> Iterator[Case]:
    """The cases of one equal pair."""
    for rule in RARE_EDGES:
        yield Case(proposed(RARE, "u-mpc", rule, RARE_EPSILON), RARE_RECORDS)


def proposed(name: str, protocol: str, edges: str, epsilon: str = EPSILON) -> Study:
    """A study of one statistic by one protocol."""
    by_pairs = protocol == "bell-2pc"
    settings = (
        BellTwoPcSettings(edges=edges) if by_pairs else UMpcSettings(edges=edges, dealer=DEALER)
    )
    return study_of(name, FIELDS, settings, epsilon=epsilon)


def table_of(rng: np.random.Generator, records: int) -> dict[str, NDArray[np.int64]]:
    """Skewed and dependent columns with ties: (records,) each, the first class first."""
    base = rng.gamma(2.0, 5.0, records)
    x = np.clip(base, 0, 40).astype(np.int64)
    y = np.clip(5 - rng.geometric(0.5, records) + (base > 12), 1, 5).astype(np.int64)
    z = np.clip(rng.normal(4, 8, records), -10, 30).astype(np.int64)
    positive = (rng.random(records) < 0.2 + 0.4 * (base > 10)).astype(np.int64)
    x[:FIRST] = np.clip(x[:FIRST] + 4, 0, 40)
    rare = np.arange(records)
    rare[1] = rare[0]  # the only two equal records
    return {"x": x, "y": y, "z": z, "positive": positive, "rare": rare}


@dataclass(frozen=True)
class Found:
    """Shares of studies. withheld: without a value. length: half, in standard deviations."""

    covered: float
    by_noise: float
    withheld: int
    length: float


def measure(case: Case, runs: int, seed: int) -> Found:
    """Make so many simulated studies of a case."""
    rng = np.random.default_rng(seed)
    table = table_of(rng, case.records)
    study, sizes = case.study, case.sizes
    every = means_over(study, table, all_sets(study, case.records, case.first))
    zeros = [0.0] * len(every)
    truth = estimate(study.estimator, list(every), zeros, zeros, sizes.sets).value
    if truth is None:
        raise ValueError(f"{study.statistic} has no value on this table")
    covered, by_noise, values, lengths = 0, 0, [], []
    for _ in range(runs):
        released = release(case, table, rng)
        result, found = estimated(study, released, sizes.sets, sizes.edges)
        if result.value is None or found.low is None or found.high is None:
            continue
        values.append(result.value)
        covered += found.low <= truth <= found.high
        lengths.append((found.high - found.low) / 2)
        # where the interval of the noise has no end, it holds every value
        low = -inf if found.noise_low is None else found.noise_low
        high = inf if found.noise_high is None else found.noise_high
        by_noise += low <= truth <= high
    std = float(np.std(values)) or 1.0
    many = max(1, len(values))
    return Found(covered / many, by_noise / many, runs - len(values), float(np.mean(lengths)) / std)


def release(case: Case, table: Mapping[str, NDArray[np.int64]], rng: np.random.Generator):
    """The released sums of one study, over an E and a noise of their own."""
    sizes = case.sizes
    totals = totals_over(case.study, table, draw_edges(case, rng))
    if case.study.protocol == "bell-2pc":
        laws = noise_of_pairs(sizes)
        noise = [
            int(laplace(rng, float(law.coins.log_ratio), 1.0, law.pairs).sum()) for law in laws
        ]
    else:
        laws = noise_of_sums(sizes)
        noise = [int(laplace(rng, float(law.log_ratio), law.shape, 1)[0]) for law in laws]
    noisy = [total + drawn for total, drawn in zip(totals, noise, strict=True)]
    return sum_reports(sizes, noisy, laws)


def draw_edges(case: Case, rng: np.random.Generator) -> NDArray[np.int64]:
    """E, as the sampler of a run draws it: (edges, k) numbers of records."""
    words = Stream(rng.bytes(32)).words
    study, sizes = case.study, case.sizes
    if study.two_sample:
        ones = case.records - case.first
        return biregular(case.first, ones, sizes.edges, words) + np.array([0, case.first])
    pairings = pairings_of(study.edges)
    if pairings is not None:
        return matchings(case.records, pairings, words)
    return balanced(case.records, sizes.edges, words, study.degree)


def totals_over(
    study: Study, table: Mapping[str, NDArray[np.int64]], edges: NDArray[np.int64]
) -> list[int]:
    """Each kernel added up over these sets, in units."""
    used = {field.name: table[field.name][None] for field in study.fields if field.name in table}
    return [int(total) for total in totals_by_kernel(study, used, edges)[0]]


def means_over(
    study: Study, table: Mapping[str, NDArray[np.int64]], edges: NDArray[np.int64]
) -> list[float]:
    totals = totals_over(study, table, edges)
    units = [float(kernel.unit) for kernel in study.parsed_kernels]
    return [total * unit / len(edges) for total, unit in zip(totals, units, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="Studies of each case.")
    parser.add_argument("--only", nargs="*", default=(*STATISTICS, RARE), help="Statistics.")
    parser.add_argument("--protocols", nargs="*", default=list(EDGES), help="Protocols.")
    parser.add_argument("--edges", nargs="*", default=[], help="Sizes of E; all if none is named.")
    parser.add_argument("--seed", type=int, default=14)
    given = parser.parse_args()
    rows = []
    least = 1.0
    for number, case in enumerate(chain(cases(), rare_cases())):
        study = case.study
        wanted = study.statistic in given.only and study.protocol in given.protocols
        if not wanted or (given.edges and study.edges not in given.edges):
            continue  # a case keeps its number, and with it its table
        found = measure(case, given.runs, given.seed + number)
        least = min(least, found.covered)
        name = [case.study.statistic, case.study.protocol, case.study.edges]
        shares = [f"{found.covered:.1%}", f"{found.by_noise:.1%}", f"{found.length:.2f}"]
        rows.append([*name, *shares, str(found.withheld)])
        print(" ".join(rows[-1]), flush=True)
    columns = ["statistic", "protocol", "E", "covered", "noise alone", "half length", "withheld"]
    show("Coverage of the first interval", columns, rows)
    error = sqrt(0.05 * 0.95 / given.runs)
    print(f"least coverage {least:.1%}; due 95 % - 1, with a standard error of {error:.2%}")


if __name__ == "__main__":
    main()
