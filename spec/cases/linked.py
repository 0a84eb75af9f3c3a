"""The vectors of `linked.py`: five rows over 3 cells at one site and 4 at the other."""

from __future__ import annotations

from typing import Any

from spec.cases.joint_seed import STUDY as HASH
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.linked import keys_digest, row_list, seal_list
from spec.zero_shares import public_key

OWNS: list[dict[str, bytes]] = [
    {
        "box_secret": counting(70 + side),
        "nonce": counting(74 + side),
    }
    for side in (0, 1)
]
KEYS = ["a", "b17", "b2", "ö", "€"]
"""In the order of their code points."""
VALUES = [[0, 2, 1, 1, 2], [3, 0, 0, 2, 3]]
SEEDS = [counting(80), counting(81)]
STUDY: dict[str, Any] = {
    "hash": HASH,
    "widths": [3, 4],
    "people": list(range(len(KEYS))),
    "names": ["north", "south"],
    "box_keys": [public_key(own["box_secret"]) for own in OWNS],
}
WIDE = {**STUDY, "widths": [2**16 + 1, 2]}
RUN: Arguments = {
    "study": STUDY,
    "seeds": SEEDS,
    "keys": KEYS,
    "values": VALUES,
    "owns": OWNS,
    "dealt": counting(90),
}


def _list(side: int, keys: list[str] = KEYS, study: dict[str, Any] = STUDY) -> bytes:
    given = SEEDS[side], keys_digest(keys), VALUES[side], OWNS[side]["nonce"]
    return row_list(study, side, *given)


SEALED = seal_list(STUDY, 0, _list(1), OWNS[1]["box_secret"])
OPENED: Arguments = {
    "study": STUDY,
    "side": 0,
    "secret": OWNS[0]["box_secret"],
    "sealed": SEALED,
}
CAME: Arguments = {"study": STUDY, "side": 1, "text": _list(1)}
GOOD: Good = [
    ("run", "five rows", RUN),
    ("coordinates", "the rows of a site", {"study": STUDY, "side": 1, "seed": SEEDS[1]}),
    ("coordinates", "many cells", {"study": WIDE, "side": 0, "seed": SEEDS[0]}),
    ("keys_digest", "five keys", {"keys": KEYS}),
    (
        "row_list",
        "many cells",
        {
            "study": WIDE,
            "side": 0,
            "seed": SEEDS[0],
            "keys": keys_digest(KEYS),
            "values": [2**16, 0, 5, 6, 7],
            "nonce": counting(1),
        },
    ),
    ("open_list", "a sealed list", OPENED),
    ("check_list", "a list", CAME),
    ("check_keys", "the same keys", {"own": _list(0), "came": _list(1)}),
]
BAD: Bad = [
    ("open_list", "a list for another site", {**OPENED, "secret": OWNS[1]["box_secret"]}),
    ("open_list", "a list of another study", {**OPENED, "study": {**STUDY, "hash": counting(14)}}),
    (
        "open_list",
        "a list that was changed",
        {**OPENED, "sealed": SEALED[:-1] + bytes([SEALED[-1] ^ 1])},
    ),
    (
        "open_list",
        "a list that the coordinator sealed",
        {**OPENED, "sealed": seal_list(STUDY, 0, _list(1), counting(72))},
    ),
    ("check_list", "a list with a row too few", {**CAME, "text": _list(1)[:-4]}),
    ("check_list", "a number that is no cell", {**CAME, "text": _list(1)[:-4] + b"\x04\0\0\0"}),
    (
        "check_keys",
        "a site that has another row",
        {"own": _list(0), "came": _list(1, [*KEYS[:4], "z"])},
    ),
]
