"""The settings of a study of protocol = "central", and their rules.

`noise` names the curator's mechanism (`central_mechanisms.py`). All of them average one symmetric
kernel. Those of `SUBSAMPLED` average over `edges` independent sets, the others over sets that their
definition fixes, which is `edges = "all"`.

`concentration` (ξ) and `spread` (τ) say that the coordinator knows more about the records than
their bounds. They decide the size of the noise. Every mechanism is ε-DP whether they hold or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.parts import exact
from umpc.study.rules import check_choice
from umpc.study.settings import ProtocolSettings, describe
from umpc.ustat.sampling import read_rule
from umpc_papers.central.edges import edge_kernel
from umpc_papers.central.uniformity import LEAST_RECORDS, uniformity_test

SUBSAMPLED = ("coinpress_subsampled", "hajek_subsampled")
MECHANISMS = (
    "laplace",
    "coinpress_naive",
    "coinpress_all",
    "coinpress_subsampled",
    "hajek",
    "hajek_subsampled",
    "hajek_split",
)
WITH_CONCENTRATION = ("hajek", "hajek_subsampled")
WITH_SPREAD = ("coinpress_naive", "coinpress_all", "coinpress_subsampled", "hajek_split")
MOST_CHUNKS = 999
TESTED = ("laplace", "hajek")
"""Mechanisms with which a study may test uniformity."""
PRIVATE = "private"
"""The `spread` or `concentration` that is estimated with `spread_share` of epsilon."""
EDGES = "edges"
"""The `concentration` of a triangle density, from a private share of edges (Algorithm 5)."""
DEGENERATE = "degenerate"
"""The `concentration` of corollary 2: ξ follows from range, degree and number of records."""


class CentralSettings(ProtocolSettings, frozen=True, kw_only=True, tag="central"):
    """The coordinator is shown all records, and adds the noise. All mechanisms have δ = 0."""

    noise: Annotated[str, describe("The curator's mechanism.", *MECHANISMS)] = "laplace"
    edges: Annotated[
        str,
        describe(
            "Sets of a subsampled mechanism: a number, or a multiple of n; the default is then 2n. "
            "Other mechanisms take all."
        ),
    ] = "all"
    concentration: Annotated[
        str,
        describe(
            "ξ of a Hájek mechanism, in the kernel's values: how far a record's mean is from the "
            'mean of all, at most. Or "degenerate", where only chance sets them apart; or '
            '"private", the same with a variance that takes `spread_share` of epsilon; or "edges", '
            "for a triangle density, from a share of edges that takes it. Default: the kernel's "
            "range, which always holds."
        ),
    ] = ""
    spread: Annotated[
        str,
        describe(
            "τ of a CoinPress mechanism or of hajek_split: the sub-Gaussian parameter of the "
            'kernel\'s values. Or "private": an estimate that takes `spread_share` of epsilon. '
            "Default: half the kernel's range, which always holds."
        ),
    ] = ""
    spread_share: Annotated[
        str,
        describe(
            "The share of ε of a private spread, concentration or share of edges, above 0 and "
            "below 1. The default is 1/4 where there is one."
        ),
    ] = ""
    chunks: Annotated[
        int,
        describe(
            "K of a median of means: an odd number of parts of the records, each with an estimate "
            "of all of ε, and the median is released. The default 1 is the estimate itself."
        ),
    ] = 1
    distance: Annotated[
        str,
        describe(
            "D of a test of uniformity, above 0 and at most 1: a study of the statistic "
            "uniformity then also accepts or rejects, with bounds of its errors. For the "
            "mechanisms laplace and hajek."
        ),
    ] = ""

    @property
    def newer(self) -> tuple[str, ...]:
        return ("concentration", "spread", "distance", "spread_share", "chunks")

    @property
    def private(self) -> str:
        """The private estimate that comes first: "spread", "concentration", "edges" or none."""
        if self.spread == PRIVATE:
            return "spread"
        if self.concentration == EDGES:
            return "edges"
        return "concentration" if self.concentration == PRIVATE else ""

    def exact_share(self) -> Fraction:
        """The share of ε for the private parameter; 0 without one. Raises: StudyError."""
        return exact(self.spread_share or "1/4", "spread_share") if self.private else Fraction(0)

    def knows_more(self) -> bool:
        """Whether the noise rests on more than the range of the kernel."""
        return bool(self.concentration or self.spread)


def usual_settings(entries: Mapping[str, Any]) -> dict[str, Any]:
    """A file's entries with the usual edges, if they name none."""
    subsampled = entries.get("noise") in SUBSAMPLED
    return {"edges": "2n" if subsampled else "all", **entries}


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(CentralSettings)
    check_choice('noise of "central"', settings.noise, MECHANISMS)
    _check_edges(settings)
    _check_knowledge(settings)
    _check_private(settings)
    _check_chunks(settings)
    if settings.distance:
        _check_distance(study, settings)
    if (study.sampling, study.estimator, len(study.kernels)) != ("balanced", "mean", 1):
        raise StudyError(
            f'"central" estimates the mean of one symmetric kernel, without classes; got '
            f"{study.statistic[:63]!r}, the {study.estimator} of {len(study.kernels)} sum(s), "
            f'"{study.sampling}"'
        )
    if settings.private == "edges":
        _ = edge_kernel(study.parsed_kernels[0])
    if not study.parsed_kernels[0].fields:
        raise StudyError(
            '"central" sends the fields of the kernel to the coordinator, and this kernel has none'
        )


def _check_knowledge(settings: CentralSettings) -> None:
    """ξ and τ go with mechanisms that use them, and are exact numbers above 0."""
    for key, written, mechanisms in (
        ("concentration", settings.concentration, WITH_CONCENTRATION),
        ("spread", settings.spread, WITH_SPREAD),
    ):
        if written and settings.noise not in mechanisms:
            raise StudyError(
                f"{key} goes with noise = {' or '.join(map(repr, mechanisms))}; got noise = "
                f"{settings.noise!r}. Remove {key}, or take one of these"
            )
        words = ("", PRIVATE, DEGENERATE, EDGES) if key == "concentration" else ("", PRIVATE)
        is_number = written not in words
        if is_number and exact(written, key) <= 0:
            raise StudyError(f'{key} must be a number above 0, such as "0.05"; got {written!r}')


def _check_private(settings: CentralSettings) -> None:
    """A private parameter has a share of ε, and an estimate over all sets."""
    if settings.spread_share and not settings.private:
        raise StudyError(
            'spread_share goes with spread = "private" or concentration = "private" or "edges"'
        )
    if settings.private and settings.noise in SUBSAMPLED:
        parameter = "spread" if settings.private == "spread" else "concentration"
        raise StudyError(
            f"a private {parameter} goes with a mechanism over all or disjoint sets, got "
            f"noise = {settings.noise!r}"
        )
    if settings.private and not 0 < settings.exact_share() < 1:
        raise StudyError(
            f'spread_share must be above 0 and below 1, such as "1/4"; got '
            f"{settings.spread_share!r}"
        )


def _check_chunks(settings: CentralSettings) -> None:
    """An odd number of parts, and a mechanism whose sets follow from the number of records."""
    chunks = settings.chunks
    if not (1 <= chunks <= MOST_CHUNKS and chunks % 2):
        raise StudyError(
            f"chunks must be an odd number from 1 to {MOST_CHUNKS}, got {settings.chunks}"
        )
    if chunks > 1 and (settings.noise in SUBSAMPLED or settings.distance):
        raise StudyError(
            "chunks goes with a mechanism over all or disjoint sets, without distance; got noise "
            f"= {settings.noise!r}"
        )


def _check_distance(study: Study, settings: CentralSettings) -> None:
    """A test of uniformity needs its statistic, and noise whose size is known."""
    if settings.noise not in TESTED or settings.knows_more():
        raise StudyError(
            f"distance goes with noise = {' or '.join(map(repr, TESTED))}, without concentration "
            f"or spread; got noise = {settings.noise!r}. Remove distance, or the others"
        )
    distance = exact(settings.distance, "distance")
    if not 0 < distance <= 1:
        raise StudyError(f'distance must be above 0 and at most 1; got "{settings.distance}"')
    if len(study.kernels) == 1:
        uniformity_test(study.parsed_kernels[0], distance, LEAST_RECORDS, study.exact_epsilon)


def _check_edges(settings: CentralSettings) -> None:
    number, unit = read_rule(settings.edges)
    if settings.noise in SUBSAMPLED:
        if number is None or unit == "p":
            raise StudyError(
                f'noise = "{settings.noise}" averages over a number of independent sets: write '
                f'edges = "2n" or a number, got {settings.edges!r}'
            )
    elif settings.edges != "all":
        raise StudyError(
            f'edges of noise = "{settings.noise}" is "all"; leave edges out, or take one of '
            f"{', '.join(SUBSAMPLED)}; got {settings.edges!r}"
        )
