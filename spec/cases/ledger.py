"""The vectors of `ledger.py`: lives of ledgers with a total ε of 5 and a total δ of 10^−9."""

from __future__ import annotations

from typing import Any

from spec.cases.vectors import Bad, Good, counting

A, B, C = (counting(label) for label in (1, 2, 3))
ONE, TWO = counting(5), counting(6)
SHARE, OTHER = b"the share that leaves", b"another share"
SMALL = [1, 10**12]
QUESTION = counting(9)


def _life(*steps: list[Any]) -> dict[str, Any]:
    return {"epsilon": [5, 1], "delta": [1, 10**9], "hold_seconds": 1000, "steps": list(steps)}


def _paid(study: bytes = A, attempt: bytes = ONE) -> list[list[Any]]:
    """A study from its reservation to its charge."""
    return [
        [0, "reserve", study, [2, 1], None],
        [1, "reserve_delta", study, SMALL],
        [2, "hold", study, attempt, SHARE],
        [3, "charge", study, attempt],
    ]


GOOD: Good = [
    ("run", "a study is released, and replayed", _life(*_paid(), [9, "released", A])),
    ("run", "the same charge once more is free", _life(*_paid(), [4, "charge", A, ONE])),
    (
        "run",
        "a run that ends early costs nothing",
        _life(
            [0, "reserve", A, [5, 1], SMALL],
            [1, "cancel", A],
            [2, "reserve", B, [5, 1], [0, 1]],
            [3, "released", A],
        ),
    ),
    (
        "run",
        "a crash ends reservations, and a held attempt is finished after it",
        _life(
            [0, "reserve", A, [2, 1], SMALL],
            [1, "reserve", B, [3, 1], SMALL],
            [2, "hold", A, ONE, SHARE],
            [3, "restart"],
            [4, "charge", A, ONE],
            [5, "restart"],
            [6, "released", A],
        ),
    ),
    (
        "run",
        "a held attempt is not cancelled, but dropped, and another one is charged",
        _life(
            [0, "reserve", A, [1, 3], SMALL],
            [1, "hold", A, ONE, SHARE],
            [2, "cancel", A],
            [3, "drop", A],
            [4, "reserve", A, [1, 3], SMALL],
            [5, "hold", A, TWO, OTHER],
            [6, "charge", A, TWO],
        ),
    ),
    (
        "run",
        "the time of a held attempt is up",
        _life(
            [0, "reserve", A, [5, 1], SMALL],
            [1, "hold", A, ONE, SHARE],
            [1001, "reserve", B, [5, 1], SMALL],
        ),
    ),
    (
        "run",
        "one answer, and its replay",
        _life(
            *_paid(),
            [4, "answer", A, ONE, QUESTION, b"yes"],
            [5, "restart"],
            [6, "answered", A],
        ),
    ),
]
BAD: Bad = [
    ("run", "more ε than is left", _life(*_paid(), [4, "reserve", B, [31, 10], None])),
    (
        "run",
        "more ε than is left beside a reservation",
        _life([0, "reserve", A, [3, 1], None], [1, "reserve", B, [3, 1], None]),
    ),
    ("run", "more δ than is left", _life([0, "reserve", A, [1, 1], [2, 10**9]])),
    (
        "run",
        "more δ than is left beside others",
        _life(
            [0, "reserve", A, [1, 1], [6, 10**10]],
            [1, "reserve", B, [1, 1], None],
            [2, "reserve_delta", B, [6, 10**10]],
        ),
    ),
    ("run", "a charged study is reserved again", _life(*_paid(), [4, "reserve", A, [1, 1], None])),
    (
        "run",
        "two runs of one study",
        _life([0, "reserve", A, [1, 1], None], [1, "reserve", A, [1, 1], None]),
    ),
    (
        "run",
        "a run beside a held attempt, after a crash",
        _life(
            [0, "reserve", A, [1, 1], SMALL],
            [1, "hold", A, ONE, SHARE],
            [2, "restart"],
            [3, "reserve", A, [1, 1], None],
        ),
    ),
    (
        "run",
        "δ is reserved twice",
        _life([0, "reserve", A, [1, 1], SMALL], [1, "reserve_delta", A, SMALL]),
    ),
    ("run", "a share is held without a reservation", _life([0, "hold", A, ONE, SHARE])),
    (
        "run",
        "a share is held before δ is known",
        _life([0, "reserve", A, [1, 1], None], [1, "hold", A, ONE, SHARE]),
    ),
    (
        "run",
        "a reservation that a crash ended is held",
        _life([0, "reserve", A, [1, 1], SMALL], [1, "restart"], [2, "hold", A, ONE, SHARE]),
    ),
    (
        "run",
        "a charge without a held attempt",
        _life([0, "reserve", A, [1, 1], SMALL], [1, "charge", A, ONE]),
    ),
    (
        "run",
        "a charge of another attempt than the held one",
        _life(*_paid()[:3], [3, "charge", A, TWO]),
    ),
    (
        "run",
        "a charge after the time is up",
        _life(*_paid()[:3], [1002, "charge", A, ONE]),
    ),
    ("run", "another attempt of a charged study", _life(*_paid(), [4, "charge", A, TWO])),
    ("run", "an answer that nobody paid for", _life([0, "answer", A, ONE, QUESTION, b"yes"])),
    (
        "run",
        "a second question",
        _life(
            *_paid(),
            [4, "answer", A, ONE, QUESTION, b"yes"],
            [5, "answer", A, ONE, counting(8), b"no"],
        ),
    ),
]
