"""People with one value each: the protocol object, and both sides."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from umpc.protocols.grid.protocol import GridProtocol
from umpc.protocols.people.settings import PeopleSettings, PeopleTerms
from umpc.study.document import Study
from umpc.study.settings import HONEST, Settings

SHARE = "share"
"""The one column of an aggregator: its share of the table, (cells,) of 64-bit words."""


class PeopleProtocol(GridProtocol):
    """The grid over shares of a histogram of people."""

    settings: type[Settings] = PeopleSettings
    adversaries: tuple[str, ...] = (HONEST,)
    chosen_by: Mapping[str, str] = MappingProxyType({})


def terms_of(study: Study) -> PeopleTerms:
    """Who may come, and when."""
    return study.settings_as(PeopleSettings).people


def survey_of(study: Study) -> Study:
    """The study as people saw it, before anybody was counted. Its hash is in all their messages."""
    return study.replaced(people=msgspec.structs.replace(terms_of(study), counted=""))
