"""A linear proof of many products at once, and its check on shares of them.

Boneh et al. 2019: the inputs of a gate that occurs often are polynomials, and the prover sends the
polynomial of its outputs. A verifier asks for linear forms of inputs and proof at a random point r.
Here the gate is a sum of L products, and the inputs are L wires a side. Each verifier has a share:
a node what was sent under masks, the dealer the masks. Both compute the same forms.

A proof is of Σ ρ^i·(X − y_i)·w_i = Σ ρ^i, for i = 1 … n. It is true for each ρ if and only if
every w_i is 1/(X − y_i). Or it is of Σ ρ^i·v_i·(v_i − 1) = 0: then every v_i is 0 or 1.
"""

from spec import field
from spec.field import (
    ZERO,
    Element,
    dot,
    inverse,
    lift,
    multiply,
    powers,
    root,
    subtract,
    total,
    weights,
)


def shape(records: int) -> tuple[int, int]:
    """L wires a side, of N values each: N ≥ 2 is the least power of two with (N − 1)² ≥ n."""
    size = 2
    while (size - 1) ** 2 < records:
        size *= 2
    return -(-records // (size - 1)), size


def wires(values: list[Element], seeds: list[Element], size: int) -> list[list[Element]]:
    """Each wire's values at the roots of unity of order N: a seed, and one value of each call.

    A wire is the polynomial of degree < N with these values. Value number c·L + j is in call c of
    wire j, at place c + 1; behind the last one there are zeros.
    """
    rest = len(seeds) * (size - 1) - len(values)
    padded = [*values, *[ZERO] * rest]
    return [[seed, *padded[j :: len(seeds)]] for j, seed in enumerate(seeds)]


def prove(left: list[Element], right: list[Element], seeds: list[Element]) -> list[Element]:
    """The proof of Σ left·right: 2L seeds, and 2N values of p = Σ_j f_j·g_j at roots of unity.

    The degree of p is at most 2N − 2. Its values at the places 2, 4 … 2N − 2 are the calls, and
    add up to the sum. A wire has one random seed, so its value at ONE point r tells nothing.
    """
    count, size = shape(len(left))
    f, g = wires(left, seeds[:count], size), wires(right, seeds[count:], size)
    values = []
    for place in range(2 * size):
        if place % 2 == 0:
            at = [(one[place // 2], other[place // 2]) for one, other in zip(f, g, strict=True)]
        else:
            row = weights(size, (pow(root(2 * size), place, field.P), 0))
            at = [(dot(row, one), dot(row, other)) for one, other in zip(f, g, strict=True)]
        values.append(total([multiply(one, other) for one, other in at]))
    return [*seeds, *values]


def query(
    left: list[Element], right: list[Element], proof: list[Element], r: Element
) -> list[Element]:
    """The 2L wires at r, p at r, and the sum of p over the calls: linear in all but r."""
    count, size = shape(len(left))
    row, values = weights(size, r), proof[2 * count :]
    f, g = wires(left, proof[:count], size), wires(right, proof[count : 2 * count], size)
    at_r = [dot(row, wire) for wire in f + g]
    return [*at_r, dot(weights(2 * size, r), values), total(values[2::2])]


def products_hold(asked: list[Element], due: Element) -> bool:
    """Σ_j f_j(r)·g_j(r) = p(r), and p adds up to what is due over the calls."""
    count = len(asked) // 2 - 1
    fits = dot(asked[:count], asked[count : 2 * count]) == asked[2 * count]
    return fits and asked[2 * count + 1] == due


def scaled(x: Element, records: list[Element], rho: Element) -> list[Element]:
    """(x − y_i)·ρ^i, the left side of the products. For masks x is zero."""
    rows = zip(records, powers(rho, len(records)), strict=True)
    return [multiply(subtract(x, y), power) for y, power in rows]


def inverses(x: Element, records: list[int]) -> list[Element]:
    """1/(X − y) for each number of F. X is not in F, so no difference is zero."""
    return [inverse(subtract(x, y)) for y in lift(records)]
