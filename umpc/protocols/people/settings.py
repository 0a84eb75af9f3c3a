"""The settings of a study with protocol = "people", and their rules."""

from __future__ import annotations

from typing import Annotated

import msgspec

from umpc.protocols.grid.settings import GridSettings
from umpc.study.settings import describe


class PeopleTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may come, and when.

    keys: the digest of the list of keys, one for each place, in hexadecimal (`umpc/people/places.py`).
    places: how many there are. enrolled: the keys are those of enrolments, which have an account.
    fewest: people without whom there is no result. opens, closes: in UTC, as 2026-12-01T08:00:00Z.
    counted: what both aggregators signed after closing, in hexadecimal: statement and signatures;
        empty in the study that people see, whose hash all their messages are made of.
    """

    keys: str = ""
    places: int = 0
    enrolled: bool = False
    fewest: int = 2
    opens: str = ""
    closes: str = ""
    counted: str = ""


class PeopleSettings(
    GridSettings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="people",
):
    """The noisy sum over all pairs or triples of people, who send one message each.

    Keys that the grid has too have one value here, or the grid's rules.
    """

    people: Annotated[PeopleTerms, describe("Who may come, and when.")] = PeopleTerms()
