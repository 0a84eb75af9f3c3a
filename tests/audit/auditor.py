"""An empirical audit of ε, from whole runs on two neighbouring tables.

An observer who can tell the tables apart sees `loss_bound` > ε. That is a lower confidence bound of
log((P(S) − δ) / P'(S)), the greatest over events S that are fixed before any run. Right code stays
below ε, except for a chance of ALPHA in all tests of this folder together. Code that loses much
more than ε is above it, given enough runs. The noise's whole law is known too. `law_p` compares
with it and finds most errors with far fewer runs, but only the loss shows their cost.

Paper: Ding, Wang, Wang, Zhang, Kifer 2018 (events between neighbours); Clopper, Pearson 1934 (the
bounds).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt

import numpy as np
from scipy import stats

from tests.audit.mutants import Mutant
from tests.support.protocols import noise_of
from tests.support.studies import (
    Columns,
    Entropy,
    clear_sums,
    compiled_once,
    make_attempt,
    remembering,
    table,
)
from umpc.dp.committee import CommitteeBinomial
from umpc.dp.skellam import SkellamShare
from umpc.protocols.registry import checked, delta_of
from umpc.protocols.u_mpc.settings import Law, noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.testing import lying

ALPHA = 1e-6
"""The chance that any test of right code in this folder fails, over random seeds."""
STATEMENTS = 100
"""A bound on the number of statements about right code in this folder: bounds of a loss and
p-values.
"""
EACH = ALPHA / STATEMENTS
MORE = int(os.environ.get("UMPC_AUDIT_RUNS", "1"))
"""The factor by which the runs of `make test` are multiplied."""

Tables = Sequence[Columns]
View = Callable[[Simulated], Sequence[int]]
"""An observer's view of a run, as whole numbers."""


# --- two neighbouring tables


def law_of(noise: Law):
    """Return the law, in scipy's terms, of the noise that colluders cannot subtract.

    That is the noise of h nodes, or of the coins.
    """
    if isinstance(noise, SkellamShare):
        return stats.skellam(float(noise.honest_variance / 2), float(noise.honest_variance / 2))
    if isinstance(noise, CommitteeBinomial):
        return stats.binom(noise.count, 0.5, loc=-noise.offset)
    return stats.dlaplace(float(noise.log_ratio))


@dataclass(frozen=True)
class Claim:
    """The real code's claim about a case: ε, δ, each sum's noise, and both tables' exact sums."""

    epsilon: float
    delta: float
    laws: tuple
    first: tuple[int, ...]
    second: tuple[int, ...]

    def score(self, sums: np.ndarray) -> np.ndarray:
        """Return log P'(y) / P(y) of sums y, (runs, sums), under the claimed law.

        No other events tell the tables apart better than those of this score.
        """
        total = np.zeros(len(sums))
        for column, noise, first, second in zip(
            sums.T, self.laws, self.first, self.second, strict=True
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                loss = np.log(noise.pmf(column - second)) - np.log(noise.pmf(column - first))
            total += np.nan_to_num(loss, nan=0.0, posinf=100.0, neginf=-100.0)
        return total

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The events: score at least ε, positive, or above −ε; and their complements."""
        return self.epsilon * (1 - 1e-9), 1e-9, -self.epsilon * (1 - 1e-9)


@dataclass(frozen=True)
class Case:
    """A study, two neighbouring tables, and the number of runs on each that `make test` can afford.

    rows: of every node, (x, y) or (x, y, label). replaced: the last node's further record, in
    either table.
    """

    name: str
    study: Study
    rows: tuple[tuple[tuple[int, ...], ...], ...]
    replaced: tuple[tuple[int, ...], tuple[int, ...]]
    runs: int
    worst: bool = True
    """Whether every sum changes by exactly δ_max·Δf."""

    @property
    def tables(self) -> tuple[Tables, Tables]:
        *others, last = self.rows
        return tuple(
            [table(*zip(*rows, strict=True)) for rows in (*others, (*last, one))]
            for one in self.replaced
        )

    @cached_property
    def claim(self) -> Claim:
        first, second = self.tables
        counts = [len(columns["x"]) for columns in first]
        of_first = (
            [int((columns["label"] == 0).sum()) for columns in first]
            if self.study.two_sample
            else None
        )
        made = make_attempt(checked(self.study), counts, first=of_first)
        exact = [
            tuple(clear_sums(self.study, tables, made.hypergraph)) for tables in (first, second)
        ]
        sizes = made.sizes
        changes = tuple(abs(b - a) for a, b in zip(*exact, strict=True))
        assert changes == sizes.sensitivities or not self.worst, "not the worst case"
        laws = tuple(law_of(noise) for noise in noise_of(sizes))
        return Claim(float(self.study.exact_epsilon), delta_of(sizes), laws, *exact)


@contextmanager
def remembered() -> Iterator[None]:
    """Compute everything that is equal in all runs only once: plans, coins, calibrations."""
    steps = ("noise_plan", "threshold_of", "least_coins", "tail_bound", "honest_variances")
    with compiled_once(), lying("everybody", **remembering(*steps)):
        yield


def outputs(case: Case, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Return what is seen of many whole runs on either table: (runs, numbers) each."""
    claim, seen = case.claim, ([], [])
    with remembered():
        for number, (tables, exact) in enumerate(
            zip(case.tables, (claim.first, claim.second), strict=True)
        ):
            entropy = Entropy(f"{case.name}, table {number}")
            for _ in range(case.runs * MORE):
                run = simulate(case.study, tables, entropy)
                assert case.study.edges == "all" or clear_sums(
                    case.study, tables, run.attempt.hypergraph
                ) == [*exact]
                seen[number].append(view(run))
    return np.array(seen[0]), np.array(seen[1])


def coalitions_view(run: Simulated) -> list[int]:
    """Return the released sums as t colluding nodes and the coordinator see them.

    The noise that these nodes added is taken off.
    """
    study = run.attempt.study
    known = (
        []
        if study.noise in ("in_mpc", "binomial")
        else [node.noise for node in run.nodes[: study.max_colluding]]
    )
    totals = noisy_sums(run.transcript.shares, len(study.kernels))
    return [total - sum(noise[number] for noise in known) for number, total in enumerate(totals)]


# --- what the runs prove


def at_least(successes: int, trials: int, alpha: float) -> float:
    """Clopper–Pearson: a lower bound of the probability, wrong with a chance of alpha."""
    return float(stats.beta.ppf(alpha, successes, trials - successes + 1)) if successes else 0.0


def at_most(successes: int, trials: int, alpha: float) -> float:
    """Clopper–Pearson: an upper bound of the probability, wrong with a chance of alpha."""
    return 1 - at_least(trials - successes, trials, alpha)


def loss_bound(
    first: np.ndarray, second: np.ndarray, thresholds: Sequence[float], delta: float = 0.0
) -> float:
    """Return a lower bound of the ε that holds with this δ, wrong with a chance of EACH.

    The bound is 0 where nothing is proved.

    Args: first, second: (runs,) scores of two neighbours. thresholds: fixed beforehand; c stands
    for the events {score ≥ c}, likelier in the second, and {score < c}, likelier in the first.
    """
    alpha, best = EACH / (4 * len(thresholds)), 0.0
    for threshold in thresholds:
        above = int((second >= threshold).sum()), int((first >= threshold).sum())
        below = len(first) - above[1], len(second) - above[0]
        for likely, unlikely, runs in (
            (*above, (len(second), len(first))),
            (*below, (len(first), len(second))),
        ):
            probability = at_least(likely, runs[0], alpha) - delta
            if probability > 0:
                best = max(best, log(probability / at_most(unlikely, runs[1], alpha)))
    return best


def scale_p(noise: np.ndarray, law) -> float:
    """Return a bound of the p-value of Σ|x| under the discrete Laplace law: 2·exp(−n·KL).

    The law is an exponential family, and this is Chernoff's bound. KL is the divergence of the law
    that fits best from the claimed one. That law has the ratio q with 2q/(1 − q²) = the mean of
    |x|.
    """
    mean, claimed = float(np.abs(noise).mean()), exp(-law.args[0])
    if mean == 0:
        return min(1.0, 2 * ((1 - claimed) / (1 + claimed)) ** len(noise))
    best = mean / (1 + sqrt(1 + mean * mean))
    divergence = log((1 - best) * (1 + claimed) / ((1 + best) * (1 - claimed))) + mean * log(
        best / claimed
    )
    return min(1.0, 2 * exp(-len(noise) * divergence))


def chi_square(noise: np.ndarray, law) -> float:
    """Return the p-value of the noise under its law, in bins that expect at least 8."""
    far = int(40 * law.std()) + 1
    values = np.arange(-far, far + 1)
    below, cuts = law.cdf(values) * len(noise), []
    for place, mass in enumerate(below):
        if mass - (below[cuts[-1]] if cuts else 0) >= 8 <= len(noise) - mass:
            cuts.append(place)
    expected = np.diff([0.0, *below[cuts], len(noise)])
    seen = np.bincount(np.searchsorted(values[cuts], noise, side="left"), minlength=len(expected))
    return float(stats.chisquare(seen, expected).pvalue)


def law_p(claim: Claim, first: np.ndarray, second: np.ndarray) -> float:
    """Return a p-value of the noise of both tables and all sums under the claimed law."""
    found = []
    for noise, law in zip(
        np.concatenate([first - claim.first, second - claim.second]).T, claim.laws, strict=True
    ):
        found.append(chi_square(noise, law))
        found += [scale_p(noise, law)] if law.dist.name == "dlaplace" else []
    return min(1.0, min(found) * len(found))


@dataclass(frozen=True)
class Verdict:
    """The result of an audit.

    The loss is at least `loss`, and `claimed` is promised. p is the p-value of a law, 2 for none.
    """

    what: str
    runs: int
    loss: float
    claimed: float
    p: float = 2.0

    def __str__(self) -> str:
        found = f"loss >= {self.loss:.2f}, claimed {self.claimed:g}"
        return f"{self.what:<76} {self.runs:>6} runs each, {found}" + (
            f", p = {self.p:.1e}" if self.p < 2 else ""
        )

    @property
    def sound(self) -> bool:
        return self.loss <= self.claimed and self.p > EACH

    def caught_by(self, *finders: str) -> bool:
        found = {"loss": self.loss > self.claimed, "law": self.p < EACH}
        return all(found[finder] for finder in finders)


@contextmanager
def broken_by(mutant: Mutant | None) -> Iterator[str]:
    """Run the block with a mutant in the code, or with the real code; give its name."""
    with mutant() if mutant else nullcontext():
        yield mutant.__name__ if mutant else "real"


def audit(case: Case, mutant: Mutant | None = None, view: View = coalitions_view) -> Verdict:
    """Run a case and judge what is seen. The claim is always the real code's."""
    claim = case.claim
    with broken_by(mutant) as name:
        first, second = outputs(case, view)
    loss = loss_bound(claim.score(first), claim.score(second), claim.thresholds, claim.delta)
    verdict = Verdict(
        f"{case.name}: {name}", len(first), loss, claim.epsilon, law_p(claim, first, second)
    )
    print(verdict)
    return verdict
