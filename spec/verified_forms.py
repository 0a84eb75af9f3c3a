"""Two forms of what a node says of its table: a list of its records, or the bits of its cells.

One linear proof takes both: *values* leave under masks before the challenge X, and a sum of
products of what was sent is proved. Sizes are public, so everybody knows each node's form.

| | a list | bits |
|---|---|---|
| values | the cell y_i of each record, in any order | w bits v_i of each cell, the lowest first |
| after X | w_i = 1/(X − y_i) | nothing |
| proved | Σ ρ^i·(X − y_i)·w_i = Σ ρ^i | Σ ρ^i·v_i·(v_i − 1) = 0 |
| so | each w_i is 1/(X − y_i) | each v_i is 0 or 1 |
| the node's side of the lookup | Σ w_i | Σ T(c)/(X − c), where T(c) = Σ 2^k·v |

In a list are as many records as numbers. Bits may be a table of more records, or of fewer. The sums
over classes tell, and together the classes are all cells.
"""

from spec.field import (
    ZERO,
    Element,
    dot,
    inverse,
    lift,
    negative,
    powers,
    subtract,
    total,
)
from spec.linear_proof import inverses, scaled
from spec.verified_messages import Own, Study


def width_of(cells: int, records: int) -> int:
    """Bits of a cell, if they take fewer bytes than 24 for each record; 0 is a list."""
    bits = records.bit_length()
    return bits if cells * bits < 3 * records else 0


def sizes(study: Study, place: int) -> tuple[int, int, int]:
    """A node's bits of a cell, number of values, and number of inverses."""
    cells, records = study["cells"], study["sizes"][place]
    width = width_of(cells, records)
    return (width, cells * width, 0) if width else (0, records, records)


def values_of(study: Study, own: Own) -> list[int]:
    """The node's values. Args: own: values, in their place, if the node lies."""
    width, _, _ = sizes(study, own["place"])
    counts = [own["records"].count(cell) for cell in range(study["cells"])] if width else []
    bits = [count >> k & 1 for count in counts for k in range(width)]
    found: list[int] = bits if width else own["records"]
    return own.get("values") or found


def inverses_of(width: int, x: Element, values: list[int]) -> list[Element]:
    """The numbers w that a node masks after X: none for bits."""
    return [] if width else inverses(x, values)


def factors(
    width: int, x: Element, rho: Element, values: list[int], w: list[Element], one: int
) -> tuple[list[Element], list[Element]]:
    """The factors of all products. Args: one: 1 for what was sent, and 0 for its masks."""
    if width:
        # ρ^i·v_i and v_i − 1
        v = lift(values)
        return scaled(ZERO, negative(v), rho), [subtract(each, (one, 0)) for each in v]
    return scaled(x if one else ZERO, lift(values), rho), w


def due(width: int, rho: Element, records: int) -> Element:
    """The sum of all products."""
    return ZERO if width else total(powers(rho, records))


def looked_up(width: int, x: Element, values: list[int], w: list[Element]) -> Element:
    """The node's side of the lookup: linear in values and inverses."""
    if not width:
        return total(w)
    cells = range(0, len(values), width)
    return at_cells([sum(v << k for k, v in enumerate(values[c : c + width])) for c in cells], x)


def at_cells(table: list[int], x: Element) -> Element:
    """Σ_c h(c)/(X − c)."""
    return dot(lift(table), [inverse(subtract(x, (cell, 0))) for cell in range(len(table))])
