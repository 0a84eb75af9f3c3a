"""variance = "private" of a study file: the kernels over triples, and both sums' parts of ε."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from umpc.errors import StudyError
from umpc.study.parts import exact
from umpc.ustat.estimators import WITH_VARIANCE
from umpc.ustat.expression import Expression
from umpc.ustat.projection import PAIR, TRIPLE, over_triples
from umpc.ustat.sampling import TWO_SAMPLE
from umpc.ustat.text import to_text

LARGEST, PRIVATE = "largest", "private"
VARIANCES = (LARGEST, PRIVATE)
USUAL_SHARE = "1/5"
"""The part of ε of the second sum. A fifth costs the estimate a quarter more noise."""


def check_variance_keys(
    path: Path, variance: str | None, share: int | str | None, split: Sequence[int | str]
) -> None:
    """Raises: StudyError naming a key of a study file that contradicts another."""
    if variance not in (None, *VARIANCES):
        raise StudyError(
            f"{path}: `variance` is one of {', '.join(VARIANCES)}, got {variance!r}. Correct it"
        )
    if share is not None and variance != PRIVATE:
        raise StudyError(
            f'{path}: `variance_share` goes with variance = "{PRIVATE}". Write both, or neither'
        )
    if split and variance == PRIVATE:
        raise StudyError(
            f'{path}: variance = "{PRIVATE}" splits epsilon by `variance_share`. Remove `split`'
        )
    if share is not None and not 0 < exact(str(share), "variance_share") < 1:
        raise StudyError(
            f"{path}: `variance_share` is a part of epsilon between 0 and 1, got {share}; the "
            f"default is {USUAL_SHARE}. Correct it"
        )


def with_variance(
    statistic: Any, pair: Expression, share: int | str | None
) -> tuple[Any, tuple[str, ...]]:
    """A statistic's entries over triples, and both sums' parts of ε.

    Args:
        statistic: the entries of `StudyFile`, of a mean over pairs. pair: its kernel.
        share: the second sum's part; None for the usual one.
    Raises: StudyError where the statistic is not the mean of one kernel over pairs of one class.
    """
    facts = (statistic["degree"], statistic["estimator"], len(statistic["kernels"]))
    if facts != (PAIR, "mean", 1) or statistic["sampling"] == TWO_SAMPLE:
        raise StudyError(
            f'variance = "{PRIVATE}" takes the mean of one kernel over pairs of one class, such as '
            f"kendall_tau, got {statistic['statistic']!r}, the {statistic['estimator']} of "
            f"{len(statistic['kernels'])} sum(s) over {statistic['degree']} record(s), sampling = "
            f"{statistic['sampling']!r}; leave variance out"
        )
    part = exact(USUAL_SHARE if share is None else str(share), "variance_share")
    kernels = tuple(map(to_text, over_triples(pair)))
    entries = {**statistic, "kernels": kernels, "degree": TRIPLE, "estimator": WITH_VARIANCE}
    return entries, (str(Fraction(1) - part), str(part))
