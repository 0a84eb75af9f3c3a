"""The settings of a study with protocol = "people" or "linked", and their rules.

*Counted.* After closing, a study of people names whom it counts: both aggregators signed it. The
study before has nothing there, and its hash is in all messages of people (`protocol.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from umpc.crypto.field import P
from umpc.crypto.signing import SIGNATURE_BYTES
from umpc.errors import StudyError
from umpc.people.messages import STATEMENT_BYTES
from umpc.protocols.grid.settings import DEGREES, GridSettings
from umpc.study.document import Study
from umpc.study.settings import HONEST, describe

AGGREGATORS = 2
FEWEST = 2
MOST_ATTEMPTS = 1 << 32
"""Attempts of a study whose total is checked, in the bound of δ."""
MOST_CELLS = 1 << 20
"""The most cells of a table: a place's keys grow with its logarithm, their expansion with it."""
DIGEST = re.compile("[0-9a-f]{64}")
COUNTED = re.compile(f"[0-9a-f]{{{2 * (STATEMENT_BYTES + AGGREGATORS * SIGNATURE_BYTES)}}}")
UTC = re.compile("(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@dataclass(frozen=True)
class CountedPeople:
    """Whom a study counts. n: how many. signatures: of the statement, in the order of nodes."""

    n: int
    statement: bytes
    signatures: tuple[bytes, ...]


class PeopleTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `people` of a study: the places, the time, and later the people who count.

    keys: the digest of the list of public keys, one for each place, in hexadecimal
        (`umpc/people/places.py`).
    places: how many there are. enrolled: the keys are those of enrolments, which have an account.
    fewest: people without whom there is no result. opens, closes: in UTC, as 2026-12-01T08:00:00Z.
    counted: what both aggregators signed after closing, in hexadecimal: statement and signatures;
        empty in the study that people see, whose hash all their messages are made of.
    """

    keys: str = ""
    places: int = 0
    enrolled: bool = False
    fewest: int = FEWEST
    opens: str = ""
    closes: str = ""
    counted: str = ""

    @property
    def signed(self) -> CountedPeople | None:
        """Whom the study counts; None before that is signed. Raises: StudyError."""
        return signed_in(self.counted)


def signed_in(counted: str) -> CountedPeople | None:
    """The list that both nodes signed, in hexadecimal, or None. Raises: StudyError."""
    if not counted:
        return None
    if not COUNTED.fullmatch(counted):
        raise StudyError(
            "counted has a statement and two signatures in hexadecimal, which `umpc study run` "
            "writes; leave it out of a study file"
        )
    data = bytes.fromhex(counted)
    statement, first = data[:STATEMENT_BYTES], data[STATEMENT_BYTES:-SIGNATURE_BYTES]
    n = int.from_bytes(statement[:8], "little")
    return CountedPeople(n, statement, (first, data[-SIGNATURE_BYTES:]))


class LinkedTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rows two sites have in common, and which fields lie where (docs/linked.md).

    first: the fields at the study's first node; all others lie at the second.
    rows: how many rows both sites have, n.
    closes: until when the sites may link their rows, as in `PeopleTerms`.
    counted: as in `PeopleTerms`.
    """

    first: tuple[str, ...] = ()
    rows: int = 0
    closes: str = ""
    counted: str = ""

    keys: ClassVar[str] = ""
    enrolled: ClassVar[bool] = False
    opens: ClassVar[str] = "1970-01-01T00:00:00Z"

    @property
    def places(self) -> int:
        """A row has the place of its key among all keys, in their order."""
        return self.rows

    @property
    def fewest(self) -> int:
        """All rows count, or none."""
        return self.rows

    @property
    def signed(self) -> CountedPeople | None:
        """The list that both sites signed, as in `PeopleTerms`."""
        return signed_in(self.counted)


class SharesSettings(GridSettings, frozen=True, kw_only=True):
    """Settings of a study whose two nodes hold shares of one table."""

    @property
    def terms(self) -> PeopleTerms | LinkedTerms:
        """The rows of which the table is made."""
        raise NotImplementedError

    @property
    def fixed(self) -> tuple[str, ...]:
        return "backend", "edges", "noise", "delta", "preprocessing", "levels"

    @property
    def shares_tables(self) -> bool:
        return True

    def delta_of_proofs(self, adversary: str, nodes: int, records: int) -> Fraction:
        # docs/people.md: α is guessed, or ⟨χ, e⟩ = 0 in one of the attempts
        return Fraction(0) if adversary == HONEST else Fraction(P + MOST_ATTEMPTS, P * P)


class PeopleSettings(SharesSettings, frozen=True, kw_only=True, tag="people"):
    """The noisy sum over all pairs or triples of people, who send one message each."""

    people: Annotated[
        PeopleTerms,
        describe(
            "A table: keys, the file with the public key of each place; enrolled = true for keys "
            "of enrolments, which have an account; fewest, the people without whom there is no "
            "result; opens and closes, in UTC as 2026-12-01T08:00:00Z."
        ),
    ] = PeopleTerms()

    @property
    def terms(self) -> PeopleTerms:
        return self.people


class LinkedSettings(SharesSettings, frozen=True, kw_only=True, tag="linked"):
    """The noisy sum over all pairs or triples of rows whose columns lie at two sites."""

    linked: Annotated[
        LinkedTerms,
        describe(
            "A table: first, the fields that lie at the first node; rows, how many rows both "
            "sites have; closes, until when these may be linked, in UTC as 2026-12-01T08:00:00Z."
        ),
    ] = LinkedTerms()

    @property
    def terms(self) -> LinkedTerms:
        return self.linked


@lru_cache(maxsize=16)
def seconds_of(moment: str) -> int:
    """A moment as 2026-12-01T08:00:00Z, in seconds since 1970. Raises: StudyError."""
    with suppress(ValueError):
        if UTC.fullmatch(moment):
            return int(np.datetime64(moment[:-1], "s").astype(np.int64))
    raise StudyError(
        f'a moment in UTC was expected, as "2026-12-01T08:00:00Z", and {moment[:40]!r} came; '
        "correct opens and closes"
    )


def check_people(study: Study) -> None:
    """The rules that are not the grid's. Raises: StudyError that says what to do."""
    for holds, wrong in _rules(study):
        if not holds:
            raise StudyError(f'a study of protocol = "{study.protocol}" {wrong}')


def _rules(study: Study) -> Iterator[tuple[bool, str]]:
    """Each rule: whether it holds, and the end of the refusal. Raises: StudyError."""
    settings, usual = study.settings_as(SharesSettings), PeopleSettings()
    for key in settings.fixed:
        fixed = getattr(usual, key)
        yield getattr(settings, key) == fixed, f"has {key} = {fixed!r}; leave {key} out"
    yield (
        settings.dealer is not None,
        "needs a dealer, who deals a key to each place; name one under [dealer]",
    )
    yield (
        study.degree in DEGREES,
        f"is over pairs or triples of people, got {study.degree} record(s); take another "
        "statistic: a mean of x is that of the kernel (a.x + b.x) / 2",
    )
    unseen = "an aggregator sees no value, so it cannot"
    yield (
        (len(study.nodes), study.max_colluding) == (AGGREGATORS, 1),
        "has two aggregators, of which one may collude; name two, and leave max_colluding out",
    )
    yield (
        not study.most_missing,
        "needs both aggregators, because each holds a share of everybody; leave may_miss out",
    )
    yield (
        not study.named_datasets,
        "reads no data set: people send their values; leave dataset out",
    )
    yield (
        study.condition is None,
        f"takes no where: {unseen} leave a person out; say whom you ask, or take strata",
    )
    public = [field.name for field in study.fields if field.public]
    yield (
        not (study.two_sample or public),
        f"has no public label: {unseen} tell how many people are in a class; leave public out, "
        "and take a statistic with a private label, such as auc_private",
    )

    people = settings.terms
    if isinstance(people, LinkedTerms):
        yield from _of_linked(people)
        return
    yield (
        DIGEST.fullmatch(people.keys) is not None,
        "names a list of keys, one for each place: write [people] with keys = FILE, which `umpc "
        "people invite` writes",
    )
    yield (
        FEWEST <= people.fewest <= people.places,
        f"has a number of fewest people from {FEWEST} to that of its {people.places} places, got "
        f"{people.fewest}; correct fewest",
    )
    yield (
        seconds_of(people.opens) < seconds_of(people.closes),
        f"opens before it closes, got {people.opens} and {people.closes}; correct one of them",
    )
    if signed := people.signed:
        yield (
            people.fewest <= signed.n <= people.places,
            f"counts {people.fewest} to {people.places} people, and a list of {signed.n} came; "
            "fewer people give no result, and what was sent is deleted 30 days after closes",
        )


def _of_linked(linked: LinkedTerms) -> Iterator[tuple[bool, str]]:
    """Each rule of the table `linked`, as `_of_terms`. Raises: StudyError."""
    yield (
        linked.rows >= FEWEST,
        f"has {FEWEST} rows or more that both sites have, got {linked.rows}; correct rows",
    )
    seconds_of(linked.closes)
    if signed := linked.signed:
        yield signed.n == linked.rows, f"counts {linked.rows} rows, and a list of {signed.n} came"
