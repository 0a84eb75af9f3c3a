"""The settings of a study of protocol = "bell-2pc", and their rules."""

from __future__ import annotations

from typing import Annotated

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.rules import check_between_0_and_1, check_choice
from umpc.study.settings import ProtocolSettings, describe

GROUPS = "group_laplace"
NOISES = ("pair_laplace", "randomised_response", GROUPS)
USUAL_GROUP = 8
MOST_GROUP = 1 << 20
USUAL_EDGES = "1p"
USUAL_TWO_SAMPLE_EDGES = "2n"
"""Pairings are of all records, so a study over two classes takes another rule."""


class BellTwoPcSettings(ProtocolSettings, frozen=True, kw_only=True, tag="bell-2pc"):
    """A noisy value of every pair is released. Pairs are garbled between their two nodes.

    edges: empty stands for the usual rule of the study's sampling.
    noise: "pair_laplace" or "randomised_response", drawn inside the pair's circuit; or
        "group_laplace", which both nodes add to the sum of each group of pairs.
    delta: with a δ the pairs of a record are composed by the advanced theorem.
    """

    edges: Annotated[
        str,
        describe(
            "Pairs to average over: 1p for one pairing of all records, 2n, a number, or all. The "
            "default is 1p, or 2n between two classes."
        ),
    ] = ""
    noise: Annotated[str, describe("The noise of every pair's value.", *NOISES)] = "pair_laplace"
    delta: Annotated[str, describe("δ of advanced composition, such as 1e-9.")] = ""
    group: Annotated[
        int,
        describe(
            "With group_laplace, the pairs of two nodes whose sum leaves them together. The "
            "default is 8."
        ),
    ] = 0

    @property
    def newer(self) -> tuple[str, ...]:
        return ("group",)

    @property
    def backend(self) -> str:
        return "garbled"


def complete(study: Study) -> Study:
    """The study with the usual edges, if it names none."""
    settings = study.settings_as(BellTwoPcSettings)
    if settings.noise == GROUPS and not settings.group:
        study = study.replaced(group=USUAL_GROUP)
    if settings.edges:
        return study
    edges = USUAL_TWO_SAMPLE_EDGES if study.two_sample else USUAL_EDGES
    return study.replaced(edges=edges)


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(BellTwoPcSettings)
    if study.degree != 2:
        raise StudyError(f'protocol = "bell-2pc" is of pairs; got degree {study.degree}')
    check_choice('noise of "bell-2pc"', settings.noise, NOISES)
    in_groups = settings.noise == GROUPS
    if in_groups and not 1 <= settings.group <= MOST_GROUP:
        raise StudyError(
            f"group is the number of pairs whose sum gets one noise, 1 to {MOST_GROUP}; got "
            f"{settings.group}"
        )
    if settings.group and not in_groups:
        raise StudyError(
            f'group is for noise = "{GROUPS}", and this study has noise = "{settings.noise}"; '
            f"change the noise, or leave group out"
        )
    if settings.delta and in_groups:
        raise StudyError(
            f'noise = "{GROUPS}" is composed by sums of absolute differences, without delta; leave '
            f"delta out"
        )
    if settings.delta:
        check_between_0_and_1(settings.delta, study)


def group_of(study: Study) -> int:
    """The pairs of a group; 1 where every pair has noise of its own."""
    return study.settings_as(BellTwoPcSettings).group or 1
