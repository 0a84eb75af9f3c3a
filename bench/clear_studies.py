"""Simulated studies in the clear: kernels over tables, with noise of the exact law.

`coverage.py` and `type_one.py` simulate thousands of studies with it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.ustat.cell_rows import every_subset
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text
from umpc_papers.bell_2pc.settings import BellTwoPcSettings

Ints = NDArray[np.int64]
Settings = UMpcSettings | BellTwoPcSettings

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "kendall_tau": ("x", "y"),
    "kendall_tau_b": ("x", "y"),
    "goodman_kruskal_gamma": ("x", "y"),
    "phi_coefficient": ("positive", "group"),
    "gini_mean_difference": ("x",),
    "covariance": ("x", "y"),
    "auc": ("x",),
    "auc_private": ("x", "positive"),
    "wilcoxon_signed_rank": ("z",),
    "spearman_rho": ("x", "y"),
    "triples_skewness": ("z",),
    "bergsma_dassios_tau_star": ("x", "y"),
    "uniformity": ("cell",),
    "auc_difference": ("score_a", "score_b", "positive"),
    "auc_difference_public": ("score_a", "score_b"),
    "tau_difference": ("score_a", "score_b", "x"),
    "concordance_difference": ("score_a", "score_b", "x", "positive"),
    "renyi_entropy": ("y",),
    "duplicate_pair_ratio": ("rare",),
}
"""Statistic → the columns that it takes. z has both signs; positive and group have two values."""
CLASS = FieldText.of_categories("class", ["case", "control"], public=True)
DEALER = Participant("dealer", "dealer:1")
NODES = tuple(Participant(f"node-{number}", f"node-{number}:1") for number in range(3))


def study_of(
    statistic: str,
    fields: Mapping[str, FieldText],
    settings: Settings,
    *,
    epsilon: str,
    max_colluding: int = 1,
    parameters: Mapping[str, int] | None = None,
) -> Study:
    """A study of three nodes. Args: fields: at least those of the statistic's columns."""
    found = LIBRARY[statistic]
    columns = COLUMNS[statistic]
    public = (CLASS,) if found.sampling == "two_sample" else ()
    return Study(
        name="simulated",
        statistic=statistic,
        kernels=tuple(map(to_text, found.expressions(columns, parameters or {}))),
        fields=(*(fields[name] for name in columns), *public),
        epsilon=epsilon,
        max_colluding=max_colluding,
        coordinator="coordinator",
        nodes=NODES,
        degree=found.degree,
        estimator=found.estimator,
        sampling=found.sampling,
        settings=settings,
    )


def all_sets(study: Study, records: int, first: int) -> Ints:
    """All sets of records: (sets, k) numbers of records, those of the first class first."""
    if study.two_sample:
        pairs = np.meshgrid(np.arange(first), np.arange(first, records), indexing="ij")
        return np.stack(pairs, axis=-1).reshape(-1, 2)
    return every_subset(records, study.degree)


def laplace(rng: np.random.Generator, log_ratio: float, shape: float, count: int) -> Ints:
    """Differences of two negative binomials: discrete Laplace for shape 1."""
    chance = -np.expm1(-log_ratio)
    drawn = rng.negative_binomial(shape, chance, (2, count))
    difference: Ints = drawn[0] - drawn[1]
    return difference


def totals_by_kernel(study: Study, table: Mapping[str, Ints], sets: Ints) -> Ints:
    """Each kernel added up over the sets, in units.

    Args: table: field → (runs, records). sets: (sets, k). Returns: (runs, sums).
    """
    runs = len(next(iter(table.values())))
    shape = (runs, len(sets))
    records = [
        {name: values[:, column].reshape(-1) for name, values in table.items()} for column in sets.T
    ]
    flat = [kernel.evaluate(records) for kernel in study.parsed_kernels]
    found = [np.broadcast_to(values, runs * len(sets)).reshape(shape) for values in flat]
    return np.stack([values.sum(axis=1) for values in found], axis=1)
