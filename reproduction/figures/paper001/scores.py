"""Scores of two classes: the synthetic ones of Bell et al. 2020, D.1, and a classifier's.

A score in [0, 1] is a number of steps of 2^-20. A protocol of domain size d = 2^levels sees its
first bits. Errors are towards the AUC of the whole scores, with ties counted half.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from reproduction.figures.draws import seed_of, stream_of
from umpc.ustat.sampling import below
from umpc.ustat.schema import FieldSchema

GRID_LEVELS = 20
"""The greatest depth of the tree of `BellAuc`."""
GRID = 1 << GRID_LEVELS
ITH_DIGIT = 1e-4
"""The score of the positives of `ithdigit`: in the first bin of 2^-13, in the second of 2^-14."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of both classes. negatives, positives: (n,) int64, in steps. source: their data."""

    source: str
    negatives: np.ndarray
    positives: np.ndarray

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.negatives), len(self.positives)

    @cached_property
    def exact(self) -> float:
        """The AUC."""
        minus, plus = self.counts(GRID_LEVELS)
        return float(plus @ (np.cumsum(minus) - minus / 2)) / (
            len(self.negatives) * len(self.positives)
        )

    def counts(self, levels: int) -> tuple[np.ndarray, np.ndarray]:
        """Both classes' histograms: two (2^levels,) float64."""
        shift, bins = GRID_LEVELS - levels, 1 << levels
        minus, plus = (
            np.bincount(own >> shift, minlength=bins) for own in (self.negatives, self.positives)
        )
        return minus.astype(float), plus.astype(float)


def score_field() -> FieldSchema:
    return FieldSchema("score", Fraction(0), Fraction(GRID - 1, GRID), Fraction(1, GRID))


def auc_one(per_class: int) -> Scores:
    """The largest score for the positives, the least for the negatives, whatever d is."""
    return Scores("auc_one", _all_at(0, per_class), _all_at(GRID - 1, per_class))


def ur(per_class: int) -> Scores:
    """Independent and uniform scores, whatever the class."""
    stream = stream_of(seed_of(f"ur {per_class}"), "ur")
    negatives, positives = (below(GRID, stream.words(per_class)) for _ in range(2))
    return Scores("ur", negatives, positives)


def ithdigit(per_class: int) -> Scores:
    """The score 10^-4 for the positives, 0 for the negatives."""
    return Scores("ithdigit", _all_at(0, per_class), _all_at(int(ITH_DIGIT * GRID), per_class))


def _all_at(step: int, count: int) -> np.ndarray:
    return np.full(count, step, dtype=np.int64)


@lru_cache(maxsize=2)
def load(name: str, per_class: int) -> Scores:
    """The scores of one data set.

    name: `auc_one`, `ur` or `ithdigit`, with per_class records a class, or `bank` or `diabetes`.
    """
    from reproduction.figures.paper001.classifier import bank, diabetes

    if name in ("bank", "diabetes"):
        return {"bank": bank, "diabetes": diabetes}[name]()
    return {"auc_one": auc_one, "ur": ur, "ithdigit": ithdigit}[name](per_class)
