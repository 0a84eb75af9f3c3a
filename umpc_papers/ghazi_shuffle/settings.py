"""The settings of a study of protocol = "ghazi-shuffle", and their rules."""

from __future__ import annotations

from typing import Annotated

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.settings import describe
from umpc_papers.local.settings import CellSettings, check_cells

SHUFFLERS = 2


class GhaziShuffleSettings(CellSettings, frozen=True, kw_only=True, tag="ghazi-shuffle"):
    """Noisy counts of cells: every node adds noise, and two shufflers hide whose is whose."""

    shufflers: Annotated[
        tuple[Participant, ...], describe("Two shufflers, each with name and address.")
    ] = ()

    @property
    def noise(self) -> str:
        return "shuffled"


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    count = len(study.shufflers)
    if count != SHUFFLERS:
        raise StudyError(
            f'"{study.protocol}" takes exactly two shufflers, of which neither sees anything '
            f"without the other; got {count}: write two [[shufflers]], each with name and address"
        )
    check_cells(study)
