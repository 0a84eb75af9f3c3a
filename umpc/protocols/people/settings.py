"""The settings of a study with protocol = "people", and their rules.

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
from typing import Annotated

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
        if not self.counted:
            return None
        if not COUNTED.fullmatch(self.counted):
            raise StudyError(
                "counted has a statement and two signatures in hexadecimal, which `umpc study run` "
                "writes; leave it out of a study file"
            )
        data = bytes.fromhex(self.counted)
        statement, first = data[:STATEMENT_BYTES], data[STATEMENT_BYTES:-SIGNATURE_BYTES]
        n = int.from_bytes(statement[:8], "little")
        return CountedPeople(n, statement, (first, data[-SIGNATURE_BYTES:]))


class PeopleSettings(
    GridSettings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="people",
):
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
    def fixed(self) -> tuple[str, ...]:
        return "backend", "edges", "noise", "delta", "preprocessing", "levels"

    @property
    def shares_tables(self) -> bool:
        return True

    def delta_of_proofs(self, adversary: str, nodes: int, records: int) -> Fraction:
        # docs/people.md: α is guessed, or ⟨χ, e⟩ = 0 in one of the attempts
        return Fraction(0) if adversary == HONEST else Fraction(P + MOST_ATTEMPTS, P * P)


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
            raise StudyError(f'a study of protocol = "people" {wrong}')


def _rules(study: Study) -> Iterator[tuple[bool, str]]:
    """Each rule: whether it holds, and the end of the refusal. Raises: StudyError."""
    settings, usual = study.settings_as(PeopleSettings), PeopleSettings()
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

    people = settings.people
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
