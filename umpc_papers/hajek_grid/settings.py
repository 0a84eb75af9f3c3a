"""The settings of a study of protocol = "hajek-grid", and their rules."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from umpc.errors import StudyError
from umpc.protocols.grid.settings import (
    BACKENDS,
    EDGES,
    PREPROCESSINGS,
    GridSettings,
    check_dealer,
)
from umpc.study.document import Study
from umpc.study.parts import exact
from umpc.study.rules import check_between_0_and_1, check_choice
from umpc.study.settings import describe

NOISES = ("distributed",)


class HajekGridSettings(GridSettings, frozen=True, kw_only=True, tag="hajek-grid"):
    """The noisy sum over all pairs, with noise for a private bound of its local sensitivity."""

    noise: Annotated[
        str, describe("Every node adds its own noise, because its size is known late.", *NOISES)
    ] = "distributed"
    delta: Annotated[
        str, describe("δ: the chance that the bound of the local sensitivity fails, such as 1e-9.")
    ] = ""
    bound_share: Annotated[
        str, describe("The share of ε that goes to the bound, above 0 and below 1.")
    ] = "1/3"

    def exact_share(self) -> Fraction:
        """λ. Raises: StudyError."""
        share = exact(self.bound_share, "bound_share")
        if not 0 < share < 1:
            raise StudyError(
                f'bound_share must be above 0 and below 1, such as "1/3"; got {self.bound_share!r}'
            )
        return share


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(HajekGridSettings)
    check_choice('backend of "hajek-grid"', settings.backend, BACKENDS)
    check_choice('noise of "hajek-grid"', settings.noise, NOISES)
    check_choice("preprocessing", settings.preprocessing, PREPROCESSINGS)
    check_choice('edges of "hajek-grid"', settings.edges, (EDGES,))
    check_dealer(study, settings)
    settings.exact_share()
    if not settings.delta:
        raise StudyError('"hajek-grid" takes a delta, such as delta = "1e-9"')
    check_between_0_and_1(settings.delta, study)
    if settings.levels:
        raise StudyError('"hajek-grid" has no levels; take bins')
    shape = (study.degree, study.sampling, study.estimator, len(study.kernels))
    if shape != (2, "balanced", "mean", 1):
        raise StudyError(
            f'"hajek-grid" estimates the mean of one symmetric kernel of pairs, without classes; '
            f'got {study.statistic[:63]!r}; take backend = "grid"'
        )
