"""The settings of a study of protocol = "local-mean", and their rules."""

from __future__ import annotations

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.settings import ProtocolSettings


class LocalMeanSettings(ProtocolSettings, frozen=True, kw_only=True, tag="local-mean"):
    """Each record answers with a random point near its value. There is nothing to set."""

    @property
    def noise(self) -> str:
        return "local"


def check_mean(study: Study) -> None:
    """Raises: StudyError unless a study asks for the mean of one kernel over single records."""
    facts = (study.degree, study.sampling, study.estimator, len(study.kernels))
    if facts != (1, "balanced", "mean", 1):
        raise StudyError(
            f'"local-mean" computes the mean of one kernel over single records, as statistic = '
            f'"mean"; got {study.statistic[:63]!r}, the {study.estimator} of '
            f"{len(study.kernels)} sum(s) over sets of {study.degree} record(s), "
            f'"{study.sampling}"'
        )
