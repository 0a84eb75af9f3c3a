"""The vectors of `garbled.py`."""

from __future__ import annotations

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.garbled import pair


def labels_of(count: int) -> list[list[int]]:
    """Labels of bit 0 of the garbler's two wires, for so many edges."""
    labels = [int.from_bytes(counting(n, 16), "little") for n in range(2 * count)]
    return [labels[:count], labels[count:]]


# x: wires 0 and 1 of the garbler; y: wires 2 and 3; wire 9 is [x < y] = the borrow of x − y
COMPARE = [["xor", 0, 2], ["xor", 1, 3], ["and", 4, 2], ["xor", 3, 6], ["and", 5, 7], ["xor", 8, 6]]
TIMES = [["and", 9, wire] for wire in range(4)]
DIFFERENCE = [[0, 1], [1, 2], [2, -1], [3, -2]]
GINI: Arguments = {
    "inputs": 4,
    "gates": COMPARE + TIMES,
    "sums": [
        {
            "constant": 0,
            "terms": DIFFERENCE + [[10 + wire, -2 * weight] for wire, weight in DIFFERENCE],
        },
        {"constant": 0, "terms": [[9, 1]]},
    ],
}
PAIR: Arguments = {
    "circuit": GINI,
    "ring": 32,
    "bits": [[0, 1, 1], [1, 1, 0], [0, 1, 0], [1, 0, 1]],
    "first_edge": 40,
    "session": counting(3, 16),
    "hash_key": counting(1, 16),
    "seeds": [counting(4), counting(6), counting(9)],
    "own_labels": labels_of(3),
}
SENT = pair(**PAIR)["garbled"]
LABELS = [int.from_bytes(counting(n, 16), "little") for n in range(4)]
EDGES: Arguments = {
    "circuit": {**GINI, "sums": [{"constant": -2, "terms": [[6, 3], [9, -1], [11, 5]]}]},
    "ring": 64,
    "delta": LABELS[3] | 1,
    "labels": [[label] for label in LABELS],
    "active": [[label] for label in LABELS],
    "first_edge": 7,
    "hash_key": counting(1, 16),
}
GOOD: Good = [
    ("pair", "mean difference of numbers of two bits", PAIR),
    ("edges", "a ring of 64 bits", EDGES),
]
BAD: Bad = [
    ("pair", "garbled edges one byte short", {**PAIR, "sent": SENT[:-1]}),
    ("pair", "garbled edges one byte long", {**PAIR, "sent": SENT + b"\0"}),
    ("edges", "an offset with lowest bit 0", {**EDGES, "delta": LABELS[3] & ~1}),
]
