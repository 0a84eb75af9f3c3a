"""The vectors of `verified_forms.py`: two nodes send bits and one a list, and one of them lies."""

from __future__ import annotations

from typing import Any

from spec import field
from spec.cases.grid import CELLS, MATRIX
from spec.cases.vectors import Arguments, Bad, Good
from spec.cases.verified_grid import (
    DEALT,
    LIAR,
    RANDOMS,
    checked_by,
    owns_of,
    raised,
    study_of,
    table_of,
    tables_of,
)
from spec.field import encode_pairs
from spec.verified_checks import check
from spec.verified_forms import values_of, width_of
from spec.verified_grid import collect, first, run, seal, second, transcript
from spec.verified_messages import Message, Own, Study

__all__ = ["BAD", "GOOD", "check", "collect", "run", "widths"]

RECORDS = [[place * place % 6 for place in range(40)], [0, 1, 1, 3, 3, 3, 5, 5, 2], [4]]
STUDY: Study = {
    **study_of(RECORDS),
    # where no class is public, all cells are one
    "classes": [list(range(len(CELLS)))],
    "counts": [[len(each)] for each in RECORDS],
}
OWNS = owns_of(RECORDS)
HONEST = transcript(STUDY, OWNS, DEALT)
BITS = values_of(STUDY, OWNS[LIAR])
WIDTH = width_of(len(CELLS), len(RECORDS[LIAR]))
HALF = (field.P + 1) // 2
MORE = [*RECORDS[LIAR], 0]


def widths(cells: int, records: list[int]) -> list[int]:
    """Bits of a cell for numbers of records."""
    return [width_of(cells, number) for number in records]


def _lied(second_by: Any = second, **lies: Any) -> Arguments:
    """Node 1 lies in its own inputs; node 0 checks, and the coordinator shows the tables."""
    owns = [own | lies if own["place"] == LIAR else own for own in OWNS]
    sent = transcript(STUDY, owns, DEALT, second_by=second_by)
    return checked_by(0, sent, STUDY, shown=tables_of(sent))


def _bits(cell: int, *low: int) -> Arguments:
    """Node 1 has other numbers in place of the low bits of a cell."""
    start = cell * WIDTH
    values = [*BITS[:start], *(v % field.P for v in low), *BITS[start + len(low) :]]
    return _lied(values=values)


def _second(change: Any) -> Arguments:
    """Node 1 sends another second message."""

    def by(study: Study, own: Own, root: bytes) -> Message:
        honest = second(study, own, root)
        if own["place"] != LIAR:
            return honest
        return seal(study, own, root, *change(honest["inverses"], honest["proof"]))

    return _lied(by)


def _collect(values: list[int]) -> Arguments:
    """Node 1 sends other values under a signature of its own."""
    messages = [first(STUDY, own) for own in OWNS]
    signed = first({**STUDY, "sizes": [40, 8, 1]}, OWNS[LIAR] | {"values": values})
    return {"study": STUDY, "messages": [messages[0], signed, messages[2]]}


GOOD: Good = [
    ("widths", "64 cells", {"cells": 64, "records": [0, 1, 84, 85, 149, 150, 171, 10**6]}),
    (
        "run",
        "bits of two nodes, a list of one",
        {"study": {**STUDY, "matrix": MATRIX}, "owns": OWNS, "dealt": DEALT, "randoms": RANDOMS},
    ),
]
BAD: Bad = [
    ("check", "a bit is 2 in place of the next bit", _bits(1, 2, 0)),
    ("check", "a bit is -1", _bits(3, -1, 2)),
    ("check", "two halves for a bit", _bits(0, 0, HALF)),
    ("check", "bits of another table", _bits(1, 1, 1)),
    ("check", "amplified cell", _lied(table=[2**30, *OWNS[LIAR]["table"][1:]])),
    (
        "check",
        "negative cell",
        _lied(table=[v + (c == 0) - (c == 4) for c, v in enumerate(OWNS[LIAR]["table"])]),
    ),
    ("check", "one more record", _lied(records=MORE, table=table_of(MORE))),
    ("check", "inverses beside bits", _second(lambda w, p: (encode_pairs([field.ONE]), p))),
    ("check", "bent proof: a call", _second(lambda w, p: (w, raised(p, -3)))),
    ("collect", "a list in place of bits", _collect(RECORDS[LIAR][:8])),
]
