"""The vectors of `point_functions.py`."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.field import P
from spec.point_functions import add_up, encode, expand, generate, modulus_of


def points(
    cells: int,
    places: list[int],
    numbers: list[int],
    roots: list[list[int]],
    hash_key: bytes,
    alpha: int | None = None,
    row: int | None = None,
) -> dict[str, object]:
    """Deal keys, expand them, rotate and add up. Args: roots: of each party, a block a key."""
    rows = zip(places, *roots, strict=True)
    keys = [generate(cells, place, [one, other], hash_key, alpha) for place, one, other in rows]
    given = [(party, cells, keys, numbers, roots[party], hash_key, row) for party in (0, 1)]
    sums = [add_up(*each) for each in given]
    return {
        "keys": encode(keys),
        "first_key": [expand(party, cells, keys[0], roots[party][0], hash_key) for party in (0, 1)],
        "sums": sums,
        "histogram": [(a + b) % modulus_of(keys[0][1]) for a, b in zip(*sums, strict=True)],
    }


def _blocks(*labels: int) -> list[int]:
    return [int.from_bytes(counting(label, 16), "little") for label in labels]


POINTS: Arguments = {
    "cells": 20,
    "places": [0, 7, 8, 19],
    "numbers": [0, 13, 11, 19],
    "roots": [_blocks(3, 4, 5, 6), _blocks(9, 10, 11, 12)],
    "hash_key": counting(2, 16),
}
AUTHENTICATED: Arguments = {**POINTS, "alpha": 0x0123456789ABCDEF}
SIZE, SIZE_OF_PAIRS = 4 * (2 * 16 + 64), 4 * (2 * 16 + 128)
PAIRS: Arguments = {"cells": 20, "count": 4, "authenticated": True}
ABOVE = bytes(SIZE_OF_PAIRS - 8) + P.to_bytes(8, "little")
GOOD: Good = [
    ("points", "20 cells in three leaves", POINTS),
    (
        "points",
        "two cells have no levels above the leaf",
        {**POINTS, "cells": 2, "places": [0, 1, 0, 1], "numbers": [0, 0, 1, 1]},
    ),
    (
        "points",
        "9 cells, one in the second leaf",
        {**POINTS, "cells": 9, "places": [8, 0, 4, 7], "numbers": [8, 1, 0, 3]},
    ),
    (
        "points",
        "64 cells fill all leaves",
        {**POINTS, "cells": 64, "places": [63, 0, 31, 32], "numbers": [63, 1, 0, 32]},
    ),
    ("points", "20 cells in four rows", {**POINTS, "row": 5}),
    ("decode", "keys on the wire", {"data": counting(1, SIZE), "cells": 20, "count": 4}),
    ("points", "authenticated, 20 cells in three leaves", AUTHENTICATED),
    (
        "points",
        "authenticated, two cells, alpha is p - 1",
        {
            **AUTHENTICATED,
            "cells": 2,
            "places": [0, 1, 0, 1],
            "numbers": [0, 0, 1, 1],
            "alpha": P - 1,
        },
    ),
    (
        "points",
        "authenticated, 9 cells, alpha is 0",
        {
            **AUTHENTICATED,
            "cells": 9,
            "places": [8, 0, 4, 7],
            "numbers": [8, 1, 0, 3],
            "alpha": 0,
        },
    ),
    (
        "points",
        "authenticated, 64 cells, alpha is 1",
        {
            **AUTHENTICATED,
            "cells": 64,
            "places": [63, 0, 31, 32],
            "numbers": [63, 1, 0, 32],
            "alpha": 1,
        },
    ),
    ("points", "authenticated, 20 cells in ten rows", {**AUTHENTICATED, "row": 2}),
    ("decode", "authenticated keys on the wire", {**PAIRS, "data": counting(1, SIZE_OF_PAIRS)}),
]
BAD: Bad = [
    ("decode", "keys one byte short", {"data": bytes(SIZE - 1), "cells": 20, "count": 4}),
    ("decode", "keys of more cells", {"data": bytes(SIZE), "cells": 33, "count": 4}),
    (
        "points",
        "a number is not below the number of cells",
        {**POINTS, "numbers": [0, 13, 11, 20]},
    ),
    (
        "points",
        "authenticated, a number is not below the number of cells",
        {**AUTHENTICATED, "numbers": [20, 13, 11, 19]},
    ),
    ("decode", "authenticated keys one byte short", {**PAIRS, "data": bytes(SIZE_OF_PAIRS - 1)}),
    ("decode", "plain keys for authenticated ones", {**PAIRS, "data": bytes(SIZE)}),
    (
        "decode",
        "authenticated keys for plain ones",
        {"data": bytes(SIZE_OF_PAIRS), "cells": 20, "count": 4},
    ),
    ("decode", "a number of an authenticated key is p", {**PAIRS, "data": ABOVE}),
    (
        "decode",
        "the first number of an authenticated key is the largest word",
        {**PAIRS, "data": bytes(4 * 32) + b"\xff" * 8 + bytes(SIZE_OF_PAIRS - 4 * 32 - 8)},
    ),
]
