"""The verified grid over triples: the released sum is cubic in the opened total.

For a symmetric f of three cells, given as lists of its values, and the table h of all records,

    6·S = C(h) − Q(h) + ⟨d, h⟩        over unordered triples of different records,

where C(h) = Σ f(c, d, e)·h_c·h_d·h_e counts all ordered triples, Q(h) = 3·Σ f(c, c, d)·h_c·h_d
takes out those with a record twice, and d_c = 2·f(c, c, c) adds those with one three times. With
Ĥ = h + a, expanded at Ĥ,

    C(h) − Q(h) = (C − Q)(Ĥ) − ⟨a, ∇(C − Q)(Ĥ)⟩ + ⟨Ĥ, ∇C(a)⟩ − C(a) − Q(a).

So the dealer deals shares of a vector, ∇C(a), and of a number, −C(a) − Q(a). Messages, proofs and
checks are those of `verified_grid.py`: they do not depend on what is computed from Ĥ.
"""

from typing import Any

from spec import field
from spec.field import decode, elements
from spec.grid import inner
from spec.prg import derive
from spec.verified_checks import check
from spec.verified_grid import masks, release, transcript
from spec.verified_messages import Message, Opened, Own, Study

Cube = list[list[list[int]]]
"""f(c, d, e)."""
FACTOR = 6
"""Each triple has six orders."""


def pairs_with(cube: Cube, table: list[int]) -> list[int]:
    """Σ f(c, d, e)·h_d·h_e for each c: a third of ∇C(h)."""
    return [inner(table, [inner(row, table) for row in matrix]) for matrix in cube]


def twice(cube: Cube) -> list[list[int]]:
    """f(c, c, d): the matrix of triples in which the first record is there twice."""
    return [matrix[cell] for cell, matrix in enumerate(cube)]


def cubic(cube: Cube, table: list[int]) -> int:
    """C(h)."""
    return inner(table, pairs_with(cube, table))


def quadratic(cube: Cube, table: list[int]) -> int:
    """Q(h)."""
    return 3 * inner(table, [inner(row, table) for row in twice(cube)])


def gradient(cube: Cube, table: list[int]) -> list[int]:
    """∇(C − Q)(h). The matrix of Q is not symmetric, so its gradient has the transpose, too."""
    rows = twice(cube)
    both = zip(rows, zip(*rows, strict=True), strict=True)
    of_q = [inner(row, table) + inner(list(column), table) for row, column in both]
    return [3 * (c - q) for c, q in zip(pairs_with(cube, table), of_q, strict=True)]


def stream(study: Study, seed: bytes) -> list[int]:
    """A node's share of ∇C(a), of all nodes but the last: a stream, as of its masks."""
    return elements(derive(seed, "grid vector", study["attempt"], 0), study["cells"])


def deal(study: Study, seeds: list[bytes], randoms: list[int]) -> tuple[list[int], list[int]]:
    """The numbers s_u, and g_N, the last node's share of ∇C(a), which is all that it lacks.

    Args: randoms: uniform numbers in F, the shares s_u of all nodes but the last.
    """
    tables = [masks(study, place, seed)["table"] for place, seed in enumerate(seeds)]
    a = [sum(column) % field.P for column in zip(*tables, strict=True)]
    number = -cubic(study["cube"], a) - quadratic(study["cube"], a)
    others = [stream(study, seed) for seed in seeds[:-1]]
    rows = zip(pairs_with(study["cube"], a), *others, strict=True)
    last = [(3 * value - sum(theirs)) % field.P for value, *theirs in rows]
    return [*randoms, (number - sum(randoms)) % field.P], last


def share(study: Study, own: Own, opened: Opened) -> int:
    """z_u, a share of 6·S + 6·noise in F. Args: own: vector (g_u) besides, of the last node."""
    cube: Cube = study["cube"]
    a = masks(study, own["place"], own["seed"])["table"]
    total = decode(opened["total"], study["cells"], "shape of a total", study["relay"])
    vector = own.get("vector") or stream(study, own["seed"])
    diagonal = [2 * cube[cell][cell][cell] for cell in range(study["cells"])]
    z = own["dealt"] - inner(a, gradient(cube, total)) + inner(vector, total)
    z += inner(diagonal, own["table"]) + FACTOR * own["noise"]
    if own["place"] == 0:
        z += cubic(cube, total) - quadratic(cube, total)
    return z % field.P


def run(study: Study, owns: list[Own], dealt: Message, randoms: list[int]) -> dict[str, Any]:
    """One attempt of honest nodes, from tables to the release."""
    numbers, vector = deal(study, dealt["seeds"], randoms)
    owns = [{**own, "dealt": number} for own, number in zip(owns, numbers, strict=True)]
    owns[-1] = {**owns[-1], "vector": vector}
    sent = transcript(study, owns, dealt)
    opened, seconds, told = sent["opened"], sent["seconds"], sent["told"]
    for place, signed in enumerate(sent["statements"]):
        check(study, place, opened, signed, seconds, told, [])
    shares = [share(study, own, opened) for own in owns]
    released = release(shares, FACTOR)
    return {**sent, "dealt": numbers, "vector": vector, "shares": shares, "released": released}
