"""What a study of `protocol = "gopa"` says: a mean over single records, of nodes that all share noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from umpc.errors import StudyError

if TYPE_CHECKING:
    from umpc.study.document import Study

GOPA = "gopa"
FIXED = {"edges": "all", "noise": GOPA, "backend": "none", "preprocessing": "none"}
"""Entries that have one value: every node publishes one number of its own records."""
LEAST_NODES, MOST_NODES = 2, 64


def check_gopa(study: Study) -> None:
    """Everything that can be said without data. Raises: StudyError."""
    if study.protocol != GOPA:
        return
    for key, value in FIXED.items():
        if (came := getattr(study, key)) != value:
            raise StudyError(
                f'{key} of "gopa" is "{value}", for every node publishes the sum of its own records; leave {key} out, '
                f"got {came!r}"
            )
    if study.dealer is not None:
        raise StudyError(f'"gopa" has no dealer; leave {study.dealer.name!r} out')
    if not LEAST_NODES <= len(study.nodes) <= MOST_NODES:
        raise StudyError(
            f'"gopa" is for {LEAST_NODES} to {MOST_NODES} nodes, each of which shares noise with all others; got '
            f"{len(study.nodes)}"
        )
    if (study.degree, study.sampling, study.estimator, len(study.kernels)) != (
        1,
        "balanced",
        "mean",
        1,
    ):
        raise StudyError(
            f'"gopa" computes the mean of one kernel over single records, as statistic = "mean"; got '
            f"{study.statistic[:63]!r}, the {study.estimator} of {len(study.kernels)} sum(s) over sets of "
            f'{study.degree} record(s), "{study.sampling}"'
        )
    if not 0 < study.exact_delta < 1:
        raise StudyError(
            f'"gopa" takes a delta between 0 and 1, got {study.delta!r}; a usual value is 1e-9'
        )
