"""What a study of protocol = "central" says: a trusted curator, the coordinator, who sees all records.

`noise` names the curator's mechanism (`umpc.protocols.central.central_mechanisms`). All of them average one symmetric kernel; those of
`SUBSAMPLED` over `edges` independent sets, the others over sets that their definition fixes, which is `edges = "all"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from umpc.errors import StudyError
from umpc.ustat.sampling import read_rule

if TYPE_CHECKING:
    from umpc.study.document import Study

CENTRAL = "central"
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
FIXED = {"backend": "none", "preprocessing": "none", "delta": ""}
"""Entries that have one value: nothing is computed between nodes, and all mechanisms have δ = 0."""


def usual_edges(noise: str | None) -> str:
    """What a study's file need not say."""
    return "2n" if noise in SUBSAMPLED else "all"


def check_central(study: Study) -> None:
    """Everything that can be said without data. Raises: StudyError."""
    if study.noise not in MECHANISMS:
        raise StudyError(
            f'noise of "{CENTRAL}" must be one of {", ".join(MECHANISMS)}, got {study.noise!r}'
        )
    for key, value in FIXED.items():
        if (came := getattr(study, key)) != value:
            raise StudyError(
                f'{key} of "{CENTRAL}" is "{value}", for the coordinator computes alone; leave {key} out, got {came!r}'
            )
    if study.dealer is not None:
        raise StudyError(f'"{CENTRAL}" has no dealer; leave {study.dealer.name!r} out')
    _check_edges(study)
    if (study.sampling, study.estimator, len(study.kernels)) != ("balanced", "mean", 1):
        raise StudyError(
            f'"{CENTRAL}" estimates the mean of one symmetric kernel, without classes; got {study.statistic[:63]!r}, '
            f'the {study.estimator} of {len(study.kernels)} sum(s), "{study.sampling}"'
        )
    if not study.parsed_kernels[0].fields:
        raise StudyError(
            f'"{CENTRAL}" sends the fields of the kernel to the coordinator, and this kernel has none'
        )


def _check_edges(study: Study) -> None:
    number, unit = read_rule(study.edges)
    if study.noise in SUBSAMPLED:
        if number is None or unit == "p":
            raise StudyError(
                f'noise = "{study.noise}" averages over so many independent sets: write edges = "2n" or a number, got '
                f"{study.edges!r}"
            )
    elif study.edges != "all":
        raise StudyError(
            f'edges of noise = "{study.noise}" is "all"; leave edges out, or take one of {", ".join(SUBSAMPLED)}; got '
            f"{study.edges!r}"
        )
