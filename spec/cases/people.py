"""The vectors of `people.py`: Kendall's tau of six people over 3 · 4 cells."""

from __future__ import annotations

from itertools import product
from typing import Any

from spec.cases.grid import signs
from spec.cases.joint_seed import STUDY as HASH
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.joint_seed import ORDER, point, sign
from spec.people import check_counted, counted_statement, counted_text, listed
from spec.people_messages import (
    Person,
    Row,
    accept,
    answer_request,
    offset,
    open_answer,
    opened_statement,
    place_key,
    places_digest,
    receipt_statement,
    request_secret,
    request_statement,
    send,
    send_number,
    sign_at,
)
from spec.zero_shares import public_key

__all__ = ["offset", "open_answer", "opened_statement", "places_digest", "receipt_statement"]
"""Functions of `people_messages.py` that have vectors here."""


def taken(study: dict[str, Any], side: int, secret: bytes, messages: list[list[Any]]) -> list[Row]:
    """An aggregator's rows after these messages. Args: messages: place and box of each."""
    stored: list[Row] = []
    for place, box in messages:
        stored = accept(study, side, secret, stored, place, box)
    return stored


def answered(
    study: dict[str, Any], requests: list[list[Any]], secrets: list[bytes], sealing: list[bytes]
) -> list[bytes]:
    """A dealer's answers. Args: requests: place, device and signature of each. secrets, sealing:
    by place, the person's secret and the one that seals it."""
    devices: dict[int, bytes] = {}
    found = []
    for place, *request in requests:
        own = [*secrets, bytes(32)][place], [*sealing, bytes(32)][place]
        found.append(answer_request(study, devices, place, request, *own))
        devices[place] = request[0]
    return found


CELLS = list(product(range(3), range(4)))
MATRIX = [[signs(*one, *other) for other in CELLS] for one in CELLS]
"""The cell of a person (x, y) is 4·x + y."""
VALUES = [0, 5, 11, 6, 5, 2]
PEOPLE: list[Person] = [
    {
        "place": place,
        "secret": counting(place),
        "cell": cell,
        "signing_seed": counting(120 + place),
        "nonce": counting(20 + place),
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
    "cells": len(CELLS),
    "places_at_once": 4,
    "fewest": 4,
    "names": ["north", "south"],
    "keys": [point(own["signing_key"]) for own in OWNS],
    "box_keys": [public_key(own["box_secret"]) for own in OWNS],
    "people": [place_key(person["signing_seed"]) for person in PEOPLE],
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
    "counted_hash": counting(92),
}
DEVICES = [counting(100 + place) for place in range(len(PEOPLE))]
"""Their secrets."""
REQUESTS = [
    [place, *request_secret(STUDY, place, person["signing_seed"], DEVICES[place])]
    for place, person in enumerate(PEOPLE)
]
ASKED: Arguments = {
    "study": STUDY,
    "requests": [REQUESTS[2], REQUESTS[0]],
    "secrets": [person["secret"] for person in PEOPLE],
    "sealing": [counting(110 + place) for place in range(len(PEOPLE))],
}
ANSWERS = answered(**ASKED)
OPENED: Arguments = {
    "study": STUDY,
    "place": 2,
    "device_secret": DEVICES[2],
    "sealed": ANSWERS[0],
}


def _asks(place: int, device: bytes, study: dict[str, Any], seed: bytes) -> Arguments:
    """A request with another device, for another study, or by another key."""
    return {**ASKED, "requests": [[place, *request_secret(study, place, seed, device)]]}


def _with_key(device: bytes) -> Arguments:
    """A request whose device is these bytes, and is signed."""
    seed: bytes = PEOPLE[0]["signing_seed"]
    return {**ASKED, "requests": [[0, device, sign_at(seed, request_statement(STUDY, 0, device))]]}


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
    return send(STUDY, {**PEOPLE[0], "signing_seed": person["signing_seed"]})[0]


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


def _signed(*statements: bytes, study: dict[str, Any] = STUDY) -> list[bytes]:
    rows = zip(OWNS, statements, strict=True)
    return [sign(own["signing_key"], counted_text(study, s), own["nonces"][0]) for own, s in rows]


CHECKED: Arguments = {
    "study": STUDY,
    "statement": STATEMENT,
    "signatures": _signed(STATEMENT, STATEMENT),
    "blamed": "coordinator",
}
KEPT: Arguments = {
    "kept": [STATEMENT, *CHECKED["signatures"]],
    "statement": STATEMENT,
    "signatures": CHECKED["signatures"],
}


def _instead(signature: bytes) -> Arguments:
    """The kept list, with another signature of the second aggregator."""
    other = [KEPT["signatures"][0], signature]
    assert check_counted(**{**CHECKED, "signatures": other}) == 3, "it is genuine"
    return {**KEPT, "signatures": other}


def _negated(signature: bytes) -> bytes:
    """(r, −s), made by anybody from (r, s)."""
    return signature[:32] + (ORDER - int.from_bytes(signature[32:], "big")).to_bytes(32, "big")


SAID: Arguments = {"study": STUDY, "n": 3, "records": [3, 3]}
GOOD: Good = [
    ("run", "six people", RUN),
    ("run", "a ring of 32 bits", {**RUN, "ring": 32}),
    (
        "run",
        "a person tells two numbers, and another one tells one aggregator only",
        {**RUN, "instead": [[3, TWO_NUMBERS], [1, [SECOND[0], b""]]]},
    ),
    ("offset", "the cell of a person", {"study": STUDY, "place": 5, "secret": counting(5)}),
    ("hash_key", "the key of the trees' hash", {"study": STUDY}),
    ("roots", "the roots of six places", {"study": STUDY, "seed": counting(80)}),
    ("places_digest", "the list of six places", {"keys": STUDY["people"]}),
    (
        "request_secret",
        "a request",
        {"study": STUDY, "place": 2, "seed": counting(122), "device_secret": DEVICES[2]},
    ),
    ("answered", "two people", ASKED),
    (
        "answered",
        "a device that asks again gets the same answer",
        {**ASKED, "requests": [REQUESTS[2], REQUESTS[2]]},
    ),
    ("open_answer", "a person's secret", OPENED),
    ("opened_statement", "the box key of an aggregator", {"study": STUDY, "side": 1}),
    (
        "receipt_statement",
        "a receipt",
        {"study": STUDY, "side": 1, "place": 2, "told": ROWS[1][2]},
    ),
    ("taken", "three people", TAKEN),
    (
        "taken",
        "a message that comes again changes nothing",
        {**TAKEN, "messages": [*TAKEN["messages"], [2, THIRD[0]]]},
    ),
    ("counted", "two lists with two equal rows", COUNTED),
    ("check_counted", "both signed one list", CHECKED),
    ("keep_counted", "the first list", {**KEPT, "kept": []}),
    ("keep_counted", "the same list again", KEPT),
    ("check_members", "both say n", SAID),
]
BAD: Bad = [
    (
        "places_digest",
        "a person has two places",
        {"keys": [*STUDY["people"], STUDY["people"][2]]},
    ),
    ("answered", "a place beyond the last one asks", _asks(6, DEVICES[0], STUDY, counting(120))),
    (
        "answered",
        "somebody else asks for a place's secret",
        _asks(0, DEVICES[0], STUDY, counting(121)),
    ),
    ("answered", "a request to another study", _asks(0, DEVICES[0], OTHER_STUDY, counting(120))),
    (
        "answered",
        "a request for another place",
        {**ASKED, "requests": [[1, *REQUESTS[0][1:]]]},
    ),
    (
        "answered",
        "a request whose device is exchanged",
        {**ASKED, "requests": [[0, REQUESTS[1][1], REQUESTS[0][2]]]},
    ),
    (
        "answered",
        "a second device of one place",
        {
            **ASKED,
            "requests": [
                REQUESTS[0],
                [0, *request_secret(STUDY, 0, counting(120), DEVICES[1])],
            ],
        },
    ),
    ("answered", "a device's key with which every secret is known", _with_key(bytes(32))),
    ("answered", "a device's key one byte short", _with_key(bytes(31))),
    (
        "open_answer",
        "an answer that was changed",
        {**OPENED, "sealed": ANSWERS[0][:-1] + bytes([ANSWERS[0][-1] ^ 1])},
    ),
    ("open_answer", "an answer one byte short", {**OPENED, "sealed": ANSWERS[0][:-1]}),
    ("open_answer", "an answer to another place", {**OPENED, "place": 1}),
    ("open_answer", "an answer to another study", {**OPENED, "study": OTHER_STUDY}),
    ("open_answer", "an answer to another device", {**OPENED, "device_secret": DEVICES[0]}),
    ("open_answer", "a dealer's key that is no secret's", {**OPENED, "sealed": bytes(80)}),
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
            "signatures": _signed(STATEMENT, STATEMENT, study=OTHER_STUDY),
        },
    ),
    (
        "keep_counted",
        "the other aggregator's signature is spelled anew",
        _instead(_negated(KEPT["signatures"][1])),
    ),
    (
        "keep_counted",
        "the other aggregator signs the list twice",
        _instead(sign(OWNS[1]["signing_key"], counted_text(STUDY, STATEMENT), 2**205)),
    ),
    (
        "check_members",
        "an aggregator adds up fewer people than both signed",
        {**SAID, "records": [3, 2]},
    ),
    (
        "check_counted",
        "a statement says another n",
        {**CHECKED, "statement": bytes([STATEMENT[0] + 1]) + STATEMENT[1:]},
    ),
]
