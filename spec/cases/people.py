"""The vectors of `people.py`: Kendall's tau of six people over 3 · 4 cells."""

from __future__ import annotations

from itertools import product
from typing import Any

from spec.cases.grid import signs
from spec.cases.joint_seed import STUDY as HASH
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.joint_seed import point, sign
from spec.people import (
    Person,
    Row,
    accept,
    counted_statement,
    listed,
    send,
    send_number,
)
from spec.zero_shares import public_key


def taken(study: dict[str, Any], side: int, secret: bytes, messages: list[list[Any]]) -> list[Row]:
    """An aggregator's rows after these messages. Args: messages: place and box of each."""
    stored: list[Row] = []
    for place, box in messages:
        stored = accept(study, side, secret, stored, place, box)
    return stored


CELLS = list(product(range(3), range(4)))
MATRIX = [[signs(*one, *other) for other in CELLS] for one in CELLS]
"""The cell of a person (x, y) is 4·x + y."""
VALUES = [0, 5, 11, 6, 5, 2]
PEOPLE: list[Person] = [
    {
        "place": place,
        "secret": counting(place),
        "cell": cell,
        "signing_key": 2**130 + place,
        "nonce": counting(20 + place),
        "signature_nonces": [2**202 + 2 * place, 2**202 + 2 * place + 1],
        "box_secrets": [counting(40 + 2 * place), counting(41 + 2 * place)],
    }
    for place, cell in enumerate(VALUES)
]
OWNS: list[dict[str, Any]] = [
    {
        "box_secret": counting(70 + side),
        "signing_key": 2**131 + side,
        "nonces": [2**203 + side, 2**204 + side],
        "noise": noise,
    }
    for side, noise in enumerate((3, -7))
]
STUDY: dict[str, Any] = {
    "hash": HASH,
    "hash_key": counting(2, 16),
    "cells": len(CELLS),
    "fewest": 4,
    "names": ["north", "south"],
    "keys": [point(own["signing_key"]) for own in OWNS],
    "box_keys": [public_key(own["box_secret"]) for own in OWNS],
    "people": [point(person["signing_key"]) for person in PEOPLE],
    "relay": "coordinator",
}
OTHER_STUDY = {**STUDY, "hash": counting(14)}
RUN: Arguments = {
    "study": STUDY,
    "people": PEOPLE,
    "dealt": {
        "secrets": [person["secret"] for person in PEOPLE],
        "seeds": [counting(80), counting(81)],
        "mask_seeds": [counting(82), counting(83)],
        "randoms": [0xDEADBEEF],
    },
    "owns": OWNS,
    "matrix": MATRIX,
    "ring": 64,
    "instead": [],
}
FIRST, SECOND, THIRD = (send(STUDY, person) for person in PEOPLE[:3])
TWO_NUMBERS = send_number(STUDY, PEOPLE[3], [2, 3])
SECRET: bytes = OWNS[0]["box_secret"]
TAKEN: Arguments = {
    "study": STUDY,
    "side": 0,
    "secret": SECRET,
    "messages": [[0, FIRST[0]], [2, THIRD[0]], [1, SECOND[0]]],
}


def _only(place: int, box: bytes) -> Arguments:
    return {**TAKEN, "messages": [[place, box]]}


def _signed_by(person: Person) -> bytes:
    """A box of the first person, with the signature of another one."""
    return send({**STUDY}, {**PEOPLE[0], "signing_key": person["signing_key"]})[0]


ROWS = taken(**TAKEN)
OTHER_ROWS = taken(
    STUDY, 1, OWNS[1]["box_secret"], [[0, FIRST[1]], [2, THIRD[1]], [3, TWO_NUMBERS[1]]]
)
COUNTED: Arguments = {
    "study": {**STUDY, "fewest": 2},
    "stored": ROWS,
    "theirs": listed(OTHER_ROWS),
    "other": "south",
}
DEALT = counting(90)
"""It stands for a digest of the keys."""
STATEMENT = counted_statement(STUDY, ROWS, DEALT)


def _signed(*statements: bytes) -> list[bytes]:
    rows = zip(OWNS, statements, strict=True)
    return [sign(own["signing_key"], statement, own["nonces"][0]) for own, statement in rows]


CHECKED: Arguments = {
    "study": STUDY,
    "statement": STATEMENT,
    "signatures": _signed(STATEMENT, STATEMENT),
    "blamed": "coordinator",
}
GOOD: Good = [
    ("run", "six people", RUN),
    ("run", "a ring of 32 bits", {**RUN, "ring": 32}),
    (
        "run",
        "a person tells two numbers, and another one tells one aggregator only",
        {**RUN, "instead": [[3, TWO_NUMBERS], [1, [SECOND[0], b""]]]},
    ),
    ("offset", "the cell of a person", {"study": STUDY, "place": 5, "secret": counting(5)}),
    ("moved_on", "a secret after a study", {"secret": counting(5)}),
    ("taken", "three people", TAKEN),
    (
        "taken",
        "a message that comes again changes nothing",
        {**TAKEN, "messages": [*TAKEN["messages"], [2, THIRD[0]]]},
    ),
    ("counted", "two lists with two equal rows", COUNTED),
    ("check_counted", "both signed one list", CHECKED),
]
BAD: Bad = [
    ("taken", "a box that was changed", _only(0, FIRST[0][:-1] + bytes([FIRST[0][-1] ^ 1]))),
    ("taken", "a box one byte short", _only(0, FIRST[0][:-1])),
    ("taken", "the other aggregator's box", _only(0, FIRST[1])),
    ("taken", "a box of another place", _only(1, FIRST[0])),
    ("taken", "a box of another study", {**_only(0, FIRST[0]), "study": OTHER_STUDY}),
    ("taken", "a sender's key that gives every box the same secret", _only(0, bytes(148))),
    ("taken", "a place beyond the last one", _only(6, FIRST[0])),
    (
        "taken",
        "a number that is no cell",
        _only(0, send_number(STUDY, PEOPLE[0], [12, 12])[0]),
    ),
    ("taken", "a box that somebody else signed", _only(0, _signed_by(PEOPLE[1]))),
    (
        "taken",
        "a second number of one place",
        {**TAKEN, "messages": [[3, TWO_NUMBERS[0]], [3, send(STUDY, PEOPLE[3])[0]]]},
    ),
    (
        "counted",
        "fewer people than the study promises",
        {**COUNTED, "study": {**STUDY, "fewest": 3}},
    ),
    (
        "counted",
        "a list that has a place twice",
        {**COUNTED, "theirs": [*listed(OTHER_ROWS), listed(OTHER_ROWS)[0]]},
    ),
    (
        "check_counted",
        "two aggregators signed different people",
        {**CHECKED, "signatures": _signed(STATEMENT, counted_statement(STUDY, OTHER_ROWS, DEALT))},
    ),
    (
        "check_counted",
        "two aggregators have other keys",
        {
            **CHECKED,
            "signatures": _signed(STATEMENT, counted_statement(STUDY, ROWS, counting(91))),
        },
    ),
    (
        "check_counted",
        "people of another study",
        {
            **CHECKED,
            "study": STUDY,
            "signatures": _signed(*(counted_statement(OTHER_STUDY, ROWS, DEALT) for _ in OWNS)),
        },
    ),
]
