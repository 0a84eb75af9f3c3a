"""The vectors of `people_verified.py`: six people over 3 · 4 cells, as in those of `people.py`."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from spec.cases.people import CELLS, OWNS, VALUES
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.field import P, elements, encode, encode_pairs
from spec.joint_seed import point, sign
from spec.people_verified import commitment, commitment_text, run, total_text

STUDY: dict[str, Any] = {
    "attempt": counting(92),
    "cells": len(CELLS),
    "names": ["node-0", "node-1"],
    "keys": [point(own["signing_key"]) for own in OWNS],
    "relay": "coordinator",
}
ALPHA = 0x0123456789ABCDEF
TABLE = [VALUES.count(cell) for cell in range(len(CELLS))]
FIRST = [elements(counting(60 + row), len(CELLS)) for row in (0, 1)]
SHARES = [
    FIRST,
    [
        [(factor * h - own) % P for h, own in zip(TABLE, row, strict=True)]
        for factor, row in zip((1, ALPHA), FIRST, strict=True)
    ],
]
ONE = [int(cell == 7) for cell in range(len(CELLS))]
RUN: Arguments = {
    "study": STUDY,
    "alpha": ALPHA,
    "seeds": [counting(82), counting(83)],
    "shares": SHARES,
    "signing": [[own["signing_key"], own["nonces"][0], own["nonces"][1]] for own in OWNS],
    "coin": counting(84),
    "salts": [counting(85, 48), counting(86, 48)],
    "added": [0] * len(CELLS),
}
HONEST = run(**RUN)
OF_TOTAL = sha256(HONEST["total"]).digest()
QUESTIONS = [[OF_TOTAL, each] for each in HONEST["signatures"]]
ASKED: Arguments = {
    "study": STUDY,
    "alpha": ALPHA,
    "seeds": RUN["seeds"],
    "questions": QUESTIONS,
    "coin": RUN["coin"],
}
COMMITTED = [each for each, _ in HONEST["commitments"]]
CHECKED: Arguments = {
    "study": STUDY,
    "of_total": OF_TOTAL,
    "told": HONEST["answer"],
    "committed": COMMITTED,
    "openings": HONEST["openings"],
}
OTHER = sha256(encode([1, *[0] * (len(CELLS) - 1)])).digest()


def signed(place: int, text: bytes) -> bytes:
    """A statement of an aggregator."""
    return sign(OWNS[place]["signing_key"], text, OWNS[place]["nonces"][0])


def committed_to(openings: list[bytes], study: dict[str, Any] = STUDY) -> Arguments:
    """A check of what both committed to."""
    rows = enumerate(openings)
    own = [commitment(study, place, OF_TOTAL, HONEST["answer"], each) for place, each in rows]
    return {**CHECKED, "committed": own, "openings": openings}


def _moved(cell: int, tag: int, by: int) -> Arguments:
    """The first aggregator's shares, moved in one cell of h and of α·h."""
    rows = [list(row) for row in SHARES[0]]
    rows[0][cell], rows[1][cell] = (rows[0][cell] + by) % P, (rows[1][cell] + tag) % P
    return {**RUN, "shares": [rows, SHARES[1]]}


COPIED = [HONEST["openings"][0], HONEST["openings"][0]]
GOOD: Good = [
    ("run", "six people", RUN),
    ("run", "an aggregator guesses α", _moved(7, ALPHA, 1)),
    ("challenge", "χ of a coin", {"study": STUDY, "coin": RUN["coin"]}),
    ("answer", "both signed one total", ASKED),
    ("check", "both opened", CHECKED),
]
BAD: Bad = [
    ("run", "an aggregator adds a vote", _moved(7, 0, 1)),
    ("run", "an aggregator leaves out a vote", _moved(VALUES[0], 0, P - 1)),
    ("run", "an aggregator moves a tag alone", _moved(7, 1, 0)),
    ("run", "an aggregator guesses another α", _moved(7, ALPHA + 1, 1)),
    ("run", "the coordinator shifts the total that it tells both", {**RUN, "added": ONE}),
    (
        "answer",
        "two totals",
        {**ASKED, "questions": [QUESTIONS[0], [OTHER, signed(1, total_text(STUDY, OTHER))]]},
    ),
    (
        "answer",
        "a total that an aggregator has not signed",
        {**ASKED, "questions": [QUESTIONS[0], [OTHER, QUESTIONS[1][1]]]},
    ),
    (
        "answer",
        "a total of another attempt",
        {
            **ASKED,
            "questions": [
                QUESTIONS[0],
                [OF_TOTAL, signed(1, total_text({**STUDY, "attempt": counting(93)}, OF_TOTAL))],
            ],
        },
    ),
    (
        "check_commitments",
        "a commitment that the coordinator made",
        {
            "study": STUDY,
            "commitments": [HONEST["commitments"][0], [OTHER, HONEST["commitments"][1][1]]],
        },
    ),
    (
        "check_commitments",
        "a commitment of the other aggregator",
        {
            "study": STUDY,
            "commitments": [
                HONEST["commitments"][0],
                [COMMITTED[1], signed(0, commitment_text(COMMITTED[1]))],
            ],
        },
    ),
    (
        "check",
        "another z than was committed to",
        {**CHECKED, "openings": [HONEST["openings"][0], HONEST["openings"][1][:-1] + b"\1"]},
    ),
    (
        "check",
        "the other one's commitment and opening, copied",
        {**CHECKED, "committed": [COMMITTED[0]] * 2, "openings": COPIED},
    ),
    (
        "check",
        "openings of another attempt",
        {**CHECKED, "study": {**STUDY, "attempt": counting(93)}},
    ),
    (
        "check",
        "a z that does not cancel the other one",
        committed_to([HONEST["openings"][0], counting(86, 48) + encode_pairs([(0, 0)])]),
    ),
]
