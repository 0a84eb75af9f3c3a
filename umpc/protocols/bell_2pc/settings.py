"""The settings of a study of protocol = "bell-2pc", and their rules."""

from __future__ import annotations

from typing import Annotated

import msgspec

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.rules import check_between_0_and_1, check_choice
from umpc.study.settings import Settings, describe

NOISES = ("pair_laplace", "randomised_response")
USUAL_EDGES = "1p"
USUAL_TWO_SAMPLE_EDGES = "2n"
"""Pairings are of all records, so a study over two classes takes another rule."""


class BellTwoPcSettings(
    Settings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="bell-2pc",
):
    """A noisy value of every pair is released. Pairs are garbled between their two nodes.

    edges: empty stands for the usual rule of the study's sampling.
    noise: "pair_laplace" or "randomised_response", drawn inside the pair's circuit.
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

    @property
    def backend(self) -> str:
        return "garbled"


def complete(study: Study) -> Study:
    """The study with the usual edges, if it names none."""
    if study.settings_as(BellTwoPcSettings).edges:
        return study
    edges = USUAL_TWO_SAMPLE_EDGES if study.two_sample else USUAL_EDGES
    return study.replaced(edges=edges)


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(BellTwoPcSettings)
    if study.degree != 2:
        raise StudyError(f'protocol = "bell-2pc" is of pairs; got degree {study.degree}')
    check_choice('noise of "bell-2pc"', settings.noise, NOISES)
    if settings.delta:
        check_between_0_and_1(settings.delta, study)
