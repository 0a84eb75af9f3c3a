"""The settings of a study with backend = "grid", and their rules."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from umpc.crypto.field import P
from umpc.errors import StudyError, UmpcError
from umpc.protocols.grid.operators.layout import MAX_CELLS
from umpc.protocols.u_mpc.settings import (
    COMMITTEE_NOISES,
    MOST_OF_GARBLED,
    NOISES,
    NOISES_WITH_DELTA,
    UMpcSettings,
    check_against_liars,
    check_noise,
)
from umpc.study.document import Study
from umpc.study.parts import FieldBins, Participant
from umpc.study.rules import check_choice
from umpc.study.settings import HONEST, ProtocolSettings, describe
from umpc.ustat.estimators import PAIR_MEDIAN

BACKEND = "grid"
BACKENDS = (BACKEND,)
PREPROCESSINGS = ("dealer", "none")
EDGES = "all"
DEGREES = (2, 3)
"""The records of a set. A kernel of three records must compare one of them with both others."""
USUAL_LEVELS = 17
MOST_HASHES = 1 << 60
"""Hashes that liars make to find a challenge that suits them, at most."""
DEGREE_WITHOUT_DEALER = 2
"""Cross terms of triples belong to three nodes, and transfers take two."""


class GridSettings(ProtocolSettings, frozen=True, kw_only=True, tag="grid"):
    """The noisy sum over all pairs or triples of records is released, from one masked histogram.

    noise: as in u-mpc. A committee's coins come from transfers between its members.
    backend, edges: each has one value, so that a study file of u-mpc becomes one of the grid by its
    backend.
    preprocessing: "dealer"; or "none", and then cross terms of pairs of nodes take transfers.
    """

    backend: Annotated[
        str,
        describe(
            "grid: all sets from one masked histogram, for kernels that factor over its axes.",
            *BACKENDS,
        ),
    ] = BACKEND
    edges: Annotated[str, describe("all, because the grid has no other sets than all.")] = EDGES
    noise: Annotated[
        str,
        describe(
            "How the noise is drawn. The default is in_mpc for 2 to 64 nodes and an ε of at most "
            "16, and distributed otherwise. With a dealer, nodes have links to each other for "
            "in_mpc and binomial only.",
            *NOISES,
        ),
    ] = "distributed"
    delta: Annotated[str, describe("δ of skellam or binomial noise, such as 1e-9.")] = ""
    preprocessing: Annotated[
        str,
        describe(
            "Who makes the masks: a dealer. With none there is no dealer: every two nodes have a "
            "link, and a cell costs transfers.",
            *PREPROCESSINGS,
        ),
    ] = "dealer"
    dealer: Annotated[Participant | None, describe("Name and address of the dealer.")] = None
    bins: Annotated[
        tuple[FieldBins, ...],
        describe(
            "Fields that are coarser than their values: a number of bins of equal width, or cut "
            "points known beforehand. Values in one bin are ties. The default is none."
        ),
    ] = ()
    levels: Annotated[
        int,
        describe(
            "For two wide columns, such as 17: pairs that agree on more leading bits of both "
            "columns together are ties. The default is none."
        ),
    ] = 0

    @property
    def proves_tables(self) -> bool:
        return True

    def delta_of_proofs(self, adversary: str, nodes: int, records: int) -> Fraction:
        if adversary == HONEST:
            return Fraction(0)
        # docs/verified_grid.md: q·(D + n + m + 2N)/(p² − p), with m + 2N ≤ 5n + 8 at each node
        points = MAX_CELLS + 6 * records + 8 * nodes
        return Fraction(MOST_HASHES * points, P * P - P)

    @property
    def coins(self) -> str:
        return "transfers" if self.noise in COMMITTEE_NOISES else "none"


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(GridSettings)
    check_choice('backend of "grid"', settings.backend, BACKENDS)
    check_choice("preprocessing", settings.preprocessing, PREPROCESSINGS)
    check_dealer(study, settings)
    if settings.edges != EDGES:
        raise StudyError(
            f'backend = "grid" is over all sets, got edges = "{settings.edges}"; say edges = '
            f'"all", or take backend = "shared" for some of the sets'
        )
    if study.degree not in DEGREES:
        raise StudyError(
            f'backend = "grid" is of pairs and triples, and {study.statistic!r} is over '
            f"{study.degree} record(s); {instead(study)}"
        )
    check_noise(study, NOISES, *NOISES_WITH_DELTA)


def check_dealer(study: Study, settings: GridSettings) -> None:
    """A dealer goes with preprocessing = "dealer" only. Raises: StudyError."""
    if settings.preprocessing == "dealer":
        if settings.dealer is None:
            raise StudyError(
                'backend = "grid" takes its masks from a dealer; name one, or say '
                'preprocessing = "none"'
            )
        return
    if settings.dealer is not None:
        raise StudyError(
            f'preprocessing = "none" has no dealer; leave {settings.dealer.name!r} out'
        )
    if study.degree > DEGREE_WITHOUT_DEALER:
        raise StudyError(
            f"without a dealer the grid is of pairs, and {study.statistic!r} is over "
            f"{study.degree} records; name a dealer"
        )


def check_grade(study: Study) -> None:
    """Raises: StudyError for a study that makes no promise where nodes or the coordinator lie."""
    if study.adversary == HONEST:
        return
    settings = study.settings_as(GridSettings)
    reasons = (
        (len(study.nodes) < 2, "takes two nodes or more", "name another node"),
        (
            settings.preprocessing != "dealer",
            "needs a dealer, who opens one point of each proof",
            "leave preprocessing out and name a dealer",
        ),
        (
            settings.noise != "distributed",
            'needs noise = "distributed": each node adds its own',
            "leave noise out",
        ),
        (
            settings.levels > 0,
            "takes no levels: one pair could count at each of them",
            "leave levels out",
        ),
    )
    for holds, reason, advice in reasons:
        if holds:
            raise StudyError(
                f'backend = "grid" with adversary = "{study.adversary}" {reason}; {advice}, or '
                f'take adversary = "{HONEST}"'
            )


def instead(study: Study) -> str:
    """The advice for a study that the grid refuses: what takes it, in this grade or in another."""
    settings = study.settings_as(GridSettings)
    if settings.shares_tables:
        return "take another statistic"  # of people and of linked rows there are only tables
    backend = "shared"
    if settings.preprocessing == "none":
        backend = "garbled" if study.degree <= MOST_OF_GARBLED else "triples"
    coarse = [key for key in ("bins", "levels") if getattr(settings, key)]
    sets = f'backend = "{backend}" with a number of edges such as edges = "2n"'
    sets += f", without {coarse[0]}" if coarse else ""
    if study.adversary != HONEST:
        elsewhere = f'nothing has it where nodes may lie; take adversary = "{HONEST}" and {sets}'
        if study.estimator == PAIR_MEDIAN:
            return elsewhere
        try:
            check_against_liars(study, UMpcSettings())
        except UmpcError:
            return elsewhere
    return f"take {sets}"
