"""The vectors of `grid.py`: Kendall's tau between numbers 0 … 1 and 0 … 2, six cells."""

from __future__ import annotations

from itertools import product
from typing import Any

from spec.cases.joint_seed import ATTEMPT, OWNS
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.grid import inner_products, run, total_statement
from spec.joint_seed import sign
from spec.transfers import fresh_delta, set_up


def products(
    vectors: list[list[int]], numbers: list[int], bits: int, width: int, **given: Any
) -> dict[str, Any]:
    """Inner products over a channel of its own."""
    seeds = given["sender_seed"], given["receiver_seed"]
    channel = set_up(given["session"], 4, fresh_delta(given["delta_seed"]), *seeds)
    return inner_products(channel, vectors, numbers, bits, width)


def signs(x: int, y: int, u: int, v: int) -> int:
    """Kendall's kernel."""
    return ((x > u) - (x < u)) * ((y > v) - (y < v))


CELLS = list(product(range(2), range(3)))
MATRIX = [[signs(*one, *other) for other in CELLS] for one in CELLS]
"""The cell of a record (x, y) is 3·x + y."""
RUN: Arguments = {
    "matrix": MATRIX,
    "ring": 32,
    "attempt": ATTEMPT,
    "seeds": [counting(1), counting(5), counting(9)],
    "randoms": [0xDEADBEEF, 0x01234567],
    "tables": [[1, 0, 0, 2, 0, 0], [0, 1, 1, 1, 0, 1], [2, 0, 0, 1, 1, 1]],
    "signing": [[own["signing_key"], own["nonce"] + 7] for own in OWNS],
    "relay": "coordinator",
}
TOTAL = run(**RUN)["total"]
OTHER_TOTAL = bytes([TOTAL[0] ^ 1]) + TOTAL[1:]
KEY, NONCE = RUN["signing"][2]
PRODUCTS: Arguments = {
    "vectors": [[3, 2**64 - 5, 0, 2**63], [1, 2, 3, 4], [2**40, 7, 7, 0]],
    "numbers": [0, 5, 7, 2],
    "bits": 3,
    "width": 31,
    "session": counting(3, 16),
    "delta_seed": counting(4),
    "sender_seed": counting(6),
    "receiver_seed": counting(9),
}
GOOD: Good = [
    ("run", "three nodes", RUN),
    ("run", "a ring of 64 bits", {**RUN, "ring": 64, "randoms": [2**63 + 1, 12345]}),
    ("products", "three vectors modulo 2^31", PRODUCTS),
    (
        "products",
        "one vector modulo 2^63",
        {**PRODUCTS, "vectors": [[2**62, 1, 5, 9]], "width": 63},
    ),
]
BAD: Bad = [
    ("run", "a total one cell short", {**RUN, "told": TOTAL[:-4]}),
    ("run", "one node is told another total", {**RUN, "told": OTHER_TOTAL}),
    (
        "run",
        "a node signed another total",
        {**RUN, "last_signature": sign(KEY, total_statement(ATTEMPT, OTHER_TOTAL), NONCE)},
    ),
    (
        "run",
        "a node signed the total of another attempt",
        {**RUN, "last_signature": sign(KEY, total_statement(counting(1), TOTAL), NONCE)},
    ),
]
