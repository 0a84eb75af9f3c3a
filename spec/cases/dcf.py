"""The vectors of `dcf.py`."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.dcf import encode, evaluate, generate


def gates(
    width: int, masks: list[int], masked: list[int], roots: list[list[int]], hash_key: bytes
) -> dict[str, object]:
    """Deal and evaluate several gates. Args: roots: of each party, a block for each gate."""
    rows = zip(masks, *roots, strict=True)
    keys = [generate(width, mask, [one, other], hash_key) for mask, one, other in rows]
    shares = [
        [
            evaluate(party, width, key, each, root, hash_key)
            for key, each, root in zip(keys, masked, roots[party], strict=True)
        ]
        for party in (0, 1)
    ]
    rows = zip(masks, *shares, strict=True)
    both = [(a[0] ^ b[0] ^ mask >> width - 1, a[1] ^ b[1]) for mask, a, b in rows]
    return {"keys": encode(keys), "shares": shares, "less_and_equal": both}


def _blocks(*labels: int) -> list[int]:
    return [int.from_bytes(counting(label, 16), "little") for label in labels]


GATES: Arguments = {
    "width": 8,
    "masks": [0, 77, 200, 255],
    "masked": [200, 77, 199, 0],
    "roots": [_blocks(3, 4, 5, 6), _blocks(9, 10, 11, 12)],
    "hash_key": counting(2, 16),
}
SIZE = 4 * (2 * 16 + 12)
GOOD: Good = [
    ("gates", "width 8", GATES),
    (
        "gates",
        "width 6 has no levels above the leaf",
        {**GATES, "width": 6, "masks": [0, 63, 31, 32], "masked": [0, 0, 33, 1]},
    ),
    (
        "gates",
        "width 33",
        {
            **GATES,
            "width": 33,
            "masks": [0, 1, 2**33 - 1, 2**32],
            "masked": [1, 1, 0, 1234567],
        },
    ),
    ("decode", "keys on the wire", {"data": counting(1, SIZE), "width": 8, "count": 4}),
]
BAD: Bad = [
    ("decode", "keys one byte short", {"data": bytes(SIZE - 1), "width": 8, "count": 4}),
    ("decode", "keys of another width", {"data": bytes(SIZE), "width": 9, "count": 4}),
]
