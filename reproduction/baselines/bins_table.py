"""The table of adaptive bins: where bins at private quantiles gain over bins of equal width.

The AUC of a score from 0 to 100,000, with public labels, from 8 bins by randomised response. The
lognormal scores crowd into a hundredth of the range; the uniform ones fill it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from statistics import fmean

import numpy as np

from reproduction.baselines.error_tables import Printed
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.local.adaptive_messages import AdaptiveMessages, Cuts
from umpc_papers.local.bell_ldp_classes import BellLdpClasses
from umpc_papers.local.bin_search import BinSearch, Masses, SearchedField
from umpc_papers.local.messages import CellClassMessages, by_classes
from umpc_papers.local.quantisation import Bins, Quantiser

FIELD = FieldSchema("score", Fraction(0), Fraction(100_000), Fraction(1))
AUC = Kernel.from_text("(sign(a.score - b.score) + 1) * (1/2)", Schema([FIELD]), symmetric=False)
BINS = 8
CLASS = 5_000
"""The records of either class."""
SHARE = Fraction(1, 4)
EPSILONS = (Fraction(1), Fraction(2), Fraction(4))
COUNTS = (CLASS, CLASS)


def skewed() -> Columns:
    """Lognormal scores, the first class above the second."""
    rng = np.random.default_rng(1)
    logs = np.concatenate([rng.normal(mean, 1, CLASS) for mean in (6.5, 5.5)])
    return {"score": np.clip(np.exp(logs), 0, 100_000).astype(np.int64)}


def uniform() -> Columns:
    """Uniform scores, those of the first class from the upper four fifths of the range."""
    rng = np.random.default_rng(1)
    both = [rng.integers(low, 100_001, CLASS) for low in (20_000, 0)]
    return {"score": np.concatenate(both)}


def exact_auc(columns: Columns) -> float:
    """The AUC of the records themselves."""
    above, below = (part["score"] for part in by_classes(columns, CLASS))
    order = np.sort(below)
    less = np.searchsorted(order, above) + np.searchsorted(order, above, side="right")
    return float(less.mean() / 2 / CLASS)


def messages(
    epsilon: Fraction, cuts: tuple[int, ...], measures: Masses | None = None
) -> CellClassMessages:
    """Randomised response on the bins between these cut points."""
    cells = Quantiser(AUC, (Bins(FIELD, cuts),), "average", two_sample=True, weights=measures)
    return CellClassMessages(BellLdpClasses(epsilon, cells))


def adaptive(epsilon: Fraction) -> AdaptiveMessages:
    """Randomised response with cut points from a first answer, which takes SHARE of epsilon."""
    first = epsilon * SHARE
    rest = epsilon - first

    search = BinSearch(first, (SearchedField(FIELD, BINS),))

    def answers(cuts: Cuts, masses: Masses | None) -> CellClassMessages:
        return messages(rest, cuts[0], search.measures(masses) if masses else None)

    return AdaptiveMessages(search, answers, rest)


def estimate_equal(columns: Columns, epsilon: Fraction) -> float:
    """One estimate with bins of equal width."""
    of = messages(epsilon, Bins.equal(FIELD, BINS).cuts)
    return of.aggregate([of.randomise(columns, COUNTS, secrets.randbits)], [COUNTS]).value


def estimate_adaptive(columns: Columns, epsilon: Fraction) -> float:
    """One estimate in two rounds."""
    of = adaptive(epsilon)
    first = of.randomise(columns, COUNTS, secrets.randbits)
    question = of.question([first], [COUNTS])
    answer = of.answer(columns, COUNTS, first, question, secrets.randbits)
    return of.estimate([first], question, [answer], [COUNTS]).value


def bins(runs: int) -> Printed:
    """The error of the AUC with equal and with adaptive bins, on skewed and uniform scores."""
    rows = []
    for case, columns in (("lognormal", skewed()), ("uniform", uniform())):
        truth = exact_auc(columns)
        for epsilon in EPSILONS:
            errors = [
                _rmse(lambda: draw(columns, epsilon), truth, min(runs, 30))  # noqa: B023
                for draw in (estimate_equal, estimate_adaptive)
            ]
            rows.append((case, str(epsilon), f"{truth:.4f}", *(f"{e:.4f}" for e in errors)))
    columns_of = ("scores", "ε", "AUC", "RMSE, equal width", f"RMSE, {SHARE} of ε for cut points")
    return Printed(f"Bins: an AUC of {2 * CLASS:,} records, {BINS} bins", columns_of, rows)


def _rmse(draw: Callable[[], float], truth: float, runs: int) -> float:
    return math.sqrt(fmean((draw() - truth) ** 2 for _ in range(runs)))
