"""The vectors of `masked_pairs.py`."""

from __future__ import annotations

from spec.cases.joint_seed import ATTEMPT
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.masked_dealing import chunk_seed, tree_key
from spec.masked_pairs import chunk


def seeds(attempt: bytes, node_seed: bytes, owners: list[int], number: int) -> dict[str, bytes]:
    """The public key of an attempt's trees, and a node's seed of one chunk."""
    key = tree_key(attempt)
    return {"tree_key": key, "chunk_seed": chunk_seed(node_seed, owners, number)}


PAIRS: Arguments = {
    "kernel": "kendall",
    "bounds": [[0, 7], [-4, 3]],
    "ring": 32,
    "by_keys": False,
    "records": [[[1, 7, 3], [-4, 0, 3]], [[6, 7, 2], [3, 0, -4]]],
    "node_seeds": [counting(3), counting(5)],
    "chunk_seeds": [counting(7), counting(11)],
    "hash_key": counting(2, 16),
}
WIDE: Arguments = {
    **PAIRS,
    "bounds": [[0, 7], [0, 131071]],
    "records": [[[1, 7, 3], [131071, 4096, 70000]], [[6, 7, 2], [0, 4096, 70001]]],
}
SINGLE: Arguments = {**PAIRS, "bounds": [[0, 7]], "records": [[[1, 7, 3]], [[6, 7, 2]]]}
PRODUCT: Arguments = {**SINGLE, "kernel": "product"}
MATERIAL = chunk(**PRODUCT)["material"][1]
SENT = chunk(**PAIRS)["messages"][1]["payload"]
SEEDS: Arguments = {"attempt": ATTEMPT, "node_seed": counting(7), "owners": [0, 2], "number": 5}
GOOD: Good = [
    ("seeds", "seeds of a chunk", SEEDS),
    ("chunk", "products need no round", PRODUCT),
    ("chunk", "mean difference", {**SINGLE, "kernel": "gini"}),
    ("chunk", "Kendall by one table a field", PAIRS),
    ("chunk", "Kendall by pieces, in two rounds", WIDE),
    ("chunk", "Kendall by a key", {**WIDE, "by_keys": True}),
    ("chunk", "Kendall in 64 bits", {**PAIRS, "ring": 64, "bounds": [[0, 200], [-4, 3]]}),
]
BAD: Bad = [
    ("chunk", "material 4 bytes short", {**PRODUCT, "material": MATERIAL[:-4]}),
    ("chunk", "material one byte long", {**PRODUCT, "material": MATERIAL + b"\0"}),
    ("chunk", "opened bits one byte short", {**PAIRS, "sent": SENT[:-1]}),
    ("chunk", "opened bits one byte long", {**PAIRS, "sent": SENT + b"\0"}),
    ("chunk", "padding of opened bits is set", {**PAIRS, "sent": SENT[:-1] + b"\x80"}),
]
