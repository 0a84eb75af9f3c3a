"""The vectors of `verified_grid.py`: Kendall's tau as in `grid.py`, among three nodes, and lies.

A bad vector is a call of the step that refuses it, with all messages that came before it.
"""

from __future__ import annotations

from typing import Any

from spec import field
from spec.cases.grid import CELLS, MATRIX
from spec.cases.joint_seed import ATTEMPT
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.field import ZERO, decode, decode_pairs, encode, encode_pairs
from spec.joint_seed import point, sign
from spec.linear_proof import inverses as inverses_at
from spec.linear_proof import shape
from spec.verified_grid import collect, first, prove_list, seal, second, transcript
from spec.verified_messages import (
    Message,
    Opened,
    Own,
    Study,
    answer_statement,
    lookup_point,
    proof_point,
    proof_powers,
    proof_statement,
)

RECORDS = [[0, 3, 3], [1, 2, 3, 5], [4]]
"""The cells of each node's records."""
KEYS = [2**128 + number for number in range(3)]
DEALER_KEY = 2**127 + 1
CLASSES = [[0, 1, 2], [3, 4, 5]]
"""The cells of either public class, here the first number of a record."""


def table_of(records: list[int]) -> list[int]:
    """The number of records in each cell."""
    return [records.count(cell) for cell in range(len(CELLS))]


def study_of(records: list[list[int]]) -> Study:
    """A study over these records."""
    return {
        "attempt": ATTEMPT,
        "relay": "coordinator",
        "dealer": "dealer",
        "dealer_key": point(DEALER_KEY),
        "names": [f"node-{place}" for place in range(len(records))],
        "keys": [point(key) for key in KEYS[: len(records)]],
        "sizes": [len(each) for each in records],
        "counts": [[sum(y in cells for y in each) for cells in CLASSES] for each in records],
        "cells": len(CELLS),
        "classes": CLASSES,
    }


def owns_of(records: list[list[int]]) -> list[Own]:
    """The nodes' own inputs and randomness, without the numbers c_u."""
    return [
        {
            "place": place,
            "seed": counting(place),
            "records": each,
            "table": table_of(each),
            "salt": counting(4 + place),
            "wires": counting(8 + place),
            "key": KEYS[place],
            "nonces": [2**202 + place, 2**203 + place],
            "noise": 3 - 2 * place,
        }
        for place, each in enumerate(records)
    ]


def dealt_of(records: list[list[int]]) -> Message:
    """The dealer's seeds and randomness."""
    seeds = [counting(place) for place in range(len(records))]
    return {"seeds": seeds, "coin": counting(13), "key": DEALER_KEY, "nonce": 2**204}


STUDY, OWNS, DEALT = study_of(RECORDS), owns_of(RECORDS), dealt_of(RECORDS)
RANDOMS = [2**63 + 5, field.P - 1]
HONEST = transcript(STUDY, OWNS, DEALT)
LIAR = 1


def checked_by(place: int, sent: dict[str, Any], study: Study = STUDY, **lies: Any) -> Arguments:
    """The arguments of `check` at one node."""
    given = {
        "study": study,
        "place": place,
        "opened": sent["opened"],
        "signed": {part: sent["statements"][place][part] for part in ("root", "digests")},
        "seconds": sent["seconds"],
        "told": sent["told"],
        "shown": [],
    }
    return {**given, **lies}


def _lied(study: Study = STUDY, **lies: Any) -> Arguments:
    """Node 1 lies in its own inputs; node 0 checks, and the coordinator shows the tables."""
    owns = [own | lies if own["place"] == LIAR else own for own in OWNS]
    sent = transcript(study, owns, DEALT)
    return checked_by(0, sent, study, shown=tables_of(sent))


def _more(**changes: int) -> Arguments:
    """Node 1 adds to cells of its table: c3=1 is one more in cell 3."""
    table = [v + changes.get(f"c{cell}", 0) for cell, v in enumerate(OWNS[LIAR]["table"])]
    return _lied(table=table)


def _second(change: Any) -> Arguments:
    """Node 1 sends another second message; node 0 checks."""

    def by(study: Study, own: Own, root: bytes) -> Message:
        return change(own, root) if own["place"] == LIAR else second(study, own, root)

    return checked_by(0, transcript(STUDY, OWNS, DEALT, second_by=by))


def _inverses(w: Any) -> Arguments:
    """Node 1 takes other numbers for its inverses. Args: w: from the right ones."""

    def change(own: Own, root: bytes) -> Message:
        right = inverses_at(lookup_point(root), own["records"])
        return prove_list(STUDY, own, root, w(right))

    return _second(change)


def _bent(place: int) -> Arguments:
    """Node 1 adds 1 to one number of its proof."""

    def change(own: Own, root: bytes) -> Message:
        right = second(STUDY, own, root)
        return seal(STUDY, own, root, right["inverses"], raised(right["proof"], place))

    return _second(change)


def raised(data: bytes, place: int) -> bytes:
    """A list in K, with 1 added in one place."""
    values = decode_pairs(data, len(data) // 16, "length", "")
    values[place] = field.add(values[place], field.ONE)
    return encode_pairs(values)


def _short(part: str) -> Arguments:
    """Node 1 leaves out the last number of its inverses or of its proof."""

    def change(own: Own, root: bytes) -> Message:
        right = second(STUDY, own, root)
        sent = {**right, part: right[part][:-16]}
        return seal(STUDY, own, root, sent["inverses"], sent["proof"])

    return _second(change)


def tables_of(sent: dict[str, Any]) -> list[bytes]:
    """All ĥ_u, which the coordinator shows if a sum is wrong."""
    return [each["table"] for each in sent["firsts"]]


def _shifted(study: Study, messages: list[Message]) -> Opened:
    """The coordinator adds 1 to the first cell of the total."""
    opened = collect(study, messages)
    (number,) = decode(opened["total"][:8], 1, "length", "")
    return {**opened, "total": encode([(number + 1) % field.P]) + opened["total"][8:]}


def _told(place: int = 0, **changes: Any) -> Arguments:
    """The answer says something else, which the dealer has signed."""
    told = {**HONEST["told"], **changes}
    signature = sign(DEALER_KEY, answer_statement(STUDY, told), 2**205)
    return checked_by(place, HONEST, told={**told, "signature": signature})


def _at(place: int, rows: list[Any], **changes: Any) -> list[Any]:
    """A list of messages, one of which is changed."""
    return [{**row, **changes} if i == place else row for i, row in enumerate(rows)]


def _seconds(**changes: Any) -> Arguments:
    """The coordinator passes on another second message of node 1."""
    return checked_by(0, HONEST, seconds=_at(LIAR, HONEST["seconds"], **changes))


def _collect(**changes: Any) -> Arguments:
    """Node 1 sends another first message under its old signature, or under a new one."""
    return {"study": STUDY, "messages": _at(LIAR, HONEST["firsts"], **changes)}


def _accept(**changes: Any) -> Arguments:
    """Node 0 gets something else from the coordinator."""
    opened = {**HONEST["opened"], **changes}
    return {"study": STUDY, "place": 0, "sent": HONEST["firsts"][0], "opened": opened}


def _by_coordinator(shown: list[bytes]) -> Arguments:
    """All nodes accepted a total that is not the sum."""
    return checked_by(0, transcript(STUDY, OWNS, DEALT, _shifted), shown=shown)


def _swapped(rows: list[Any]) -> list[Any]:
    """The last two nodes in another order."""
    return [rows[0], rows[2], rows[1]]


def _statement(study: Study, place: int, root: bytes) -> dict[str, bytes]:
    """A signature of node 1, of a statement with its digests."""
    digests = HONEST["statements"][LIAR]["digests"]
    statement = proof_statement(study, place, root, digests)
    return {"root": root, "signature": sign(KEYS[LIAR], statement, 2**206)}


def _asked(**changes: Any) -> Arguments:
    """The dealer is asked with another statement of node 1."""
    statements = _at(LIAR, HONEST["statements"], **changes)
    return {"study": STUDY, "dealt": DEALT, "statements": statements}


def points(root: bytes, place: int, inverses: bytes, study: Study, coin: bytes) -> dict[str, Any]:
    """The three challenges."""
    rho = proof_powers(root, place, inverses)
    return {"x": lookup_point(root), "rho": rho, "r": proof_point(study, coin)}


def shapes(records: list[int]) -> list[tuple[int, int]]:
    """L and N for numbers of records."""
    return [shape(number) for number in records]


OPENED, FIRST, SECOND = HONEST["opened"], HONEST["firsts"][LIAR], HONEST["seconds"][LIAR]
TABLE, LIST, PROOF = FIRST["table"], FIRST["list"], SECOND["proof"]
ROOT, PARTS = HONEST["told"]["root"], HONEST["told"]["parts"]
OTHER_STUDY = {**STUDY, "attempt": counting(14)}
LONGER = {**STUDY, "sizes": [3, 5, 1]}
UNREDUCED = b"\xff" * 8
HALF = (field.P + 1) // 2
"""Two of it are 1 in F."""
TOLD_OTHERWISE = {**STUDY, "counts": [[1, 2], [3, 1], [0, 1]]}
"""Node 1 says that three of its records are in the first class, and has two."""
RUN: Arguments = {"study": {**STUDY, "matrix": MATRIX}, "dealt": DEALT, "randoms": RANDOMS}
GOOD: Good = [
    ("shapes", "sizes of proofs", {"records": [1, 2, 9, 10, 49, 50, 10**6]}),
    (
        "points",
        "challenges",
        {
            "root": ROOT,
            "place": 1,
            "inverses": HONEST["statements"][1]["digests"][0],
            "study": {"attempt": ATTEMPT},
            "coin": DEALT["coin"],
        },
    ),
    ("run", "three nodes", {**RUN, "owns": OWNS}),
    ("check", "an honest transcript", checked_by(2, HONEST)),
]
BAD: Bad = [
    ("collect", "a table one cell short", _collect(table=TABLE[:-8])),
    ("collect", "a number of a table is not below p", _collect(table=UNREDUCED + TABLE[8:])),
    ("collect", "another table than signed", _collect(table=TABLE[8:] + TABLE[:8])),
    (
        "collect",
        "a list of one more record",
        _collect(**first(LONGER, OWNS[1] | {"records": [1, 2, 3, 5, 0]})),
    ),
    ("collect", "a table of another attempt", _collect(**first(OTHER_STUDY, OWNS[1]))),
    ("accept", "a total one cell short", _accept(total=OPENED["total"][:-8])),
    ("accept", "a list is missing", _accept(lists=OPENED["lists"][:2])),
    ("accept", "the own list is exchanged", _accept(lists=OPENED["lists"][::-1])),
    (
        "accept",
        "swapped tables",
        _accept(**{part: _swapped(OPENED[part]) for part in ("tables", "salts", "signatures")}),
    ),
    (
        "check_statements",
        "a node signed a statement of another attempt",
        {
            "study": STUDY,
            "statements": _asked(**_statement(OTHER_STUDY, 1, ROOT))["statements"],
            "blamed": STUDY["names"],
        },
    ),
    ("answer", "statement of another attempt", _asked(**_statement(OTHER_STUDY, 1, ROOT))),
    ("answer", "statement of another node", _asked(**_statement(STUDY, 2, ROOT))),
    ("answer", "two roots", _asked(**_statement(STUDY, 1, counting(3)))),
    ("answer", "a statement is missing", {**_asked(), "statements": HONEST["statements"][:2]}),
    ("answer", "dealer asked twice", {**_asked(), "dealt": {**DEALT, "seeds": []}}),
    (
        "check",
        "a coin of the coordinator",
        checked_by(0, HONEST, told={**HONEST["told"], "coin": ROOT}),
    ),
    (
        "check",
        "an answer of another attempt",
        checked_by(0, HONEST, told=transcript(OTHER_STUDY, OWNS, DEALT)["told"]),
    ),
    (
        "check",
        "another total than signed",
        checked_by(0, HONEST, opened=_shifted(STUDY, HONEST["firsts"])),
    ),
    ("check", "the dealer answers about another root", _told(root=counting(3))),
    (
        "check",
        "the dealer answers about another proof",
        _told(digests=_swapped(HONEST["told"]["digests"]), place=1),
    ),
    (
        "check",
        "the dealer answers about one wire too few",
        _told(parts=[PARTS[0][16:], *PARTS[1:]]),
    ),
    ("check", "the dealer leaves out a class", _told(parts=[PARTS[0][:-8], *PARTS[1:]])),
    ("check", "a proof is missing", checked_by(0, HONEST, seconds=HONEST["seconds"][:2])),
    ("check", "other inverses than signed", _seconds(inverses=raised(SECOND["inverses"], 2))),
    ("check", "another proof than signed", _seconds(proof=raised(PROOF, 5))),
    ("check", "inverses one too few", _short("inverses")),
    ("check", "a proof one value too short", _short("proof")),
    ("check", "w = 0", _inverses(lambda w: [ZERO for _ in w])),
    ("check", "w of another", _inverses(lambda w: [w[1], w[0], *w[2:]])),
    ("check", "bent proof: a seed", _bent(1)),
    ("check", "bent proof: a call", _bent(6)),
    ("check", "bent proof: a value between calls", _bent(7)),
    ("check", "amplified cell", _more(c3=2**30)),
    ("check", "negative cell", _more(c3=1, c4=-1)),
    ("check", "wrapped cell", _more(c3=2**63, c4=field.P - 2**63)),
    ("check", "split cell", _more(c1=HALF - 1, c4=HALF)),
    ("check", "one more record", _more(c0=1)),
    ("check", "a record outside", _lied(records=[1, 2, 3, 6], table=table_of([1, 2, 3]))),
    ("check", "classes other than told", _lied(TOLD_OTHERWISE)),
    ("check", "shifted total", _by_coordinator(tables_of(HONEST))),
    ("check", "shifted total, and no table is shown", _by_coordinator([])),
    (
        "check",
        "shifted total, and swapped tables are shown",
        _by_coordinator(_swapped(tables_of(HONEST))),
    ),
    ("release", "odd sum", {"shares": [field.P - 4, 9, 2], "factor": 2}),
]
