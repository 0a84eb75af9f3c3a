"""A table of noisy counts: how many records lie in each cell, from each node's own histogram.

A record that is replaced leaves one cell and enters another, so the table changes by 2 in L1. With
a tree the sums of neighbours are released, too, level by level (Hay et al. 2010). No record meets
another one, so no node sends anything but its share of the noisy table, under zero shares
(`zero_shares.py`).
"""

from bisect import bisect_right
from decimal import localcontext
from fractions import Fraction
from math import prod

from spec.noise import DIGITS, Source, geometric, polyas

Table = dict[tuple[int, ...], int]
"""Cell → number of records. A cell has a place on each axis."""


def counts(records: list[list[int]], cuts: list[list[int]], tree: int) -> list[int]:
    """All counts of a node's records: table after table, each with its last axis fastest.

    Args: records: the values of each, in steps. cuts: of each axis, ascending; a value's place is
        the number of cuts that are not above it. tree: the axis of a tree, or -1.
    """
    shape = [len(each) + 1 for each in cuts]
    table: Table = {}
    for record in records:
        cell = tuple(bisect_right(*each) for each in zip(cuts, record, strict=True))
        table[cell] = table.get(cell, 0) + 1
    found = listed(table, shape)
    # Hay et al. 2010: each node of the tree is the sum of two below it, the last one maybe of one
    while tree >= 0 and shape[tree] > 1:
        above: Table = {}
        for cell, count in table.items():
            parent = (*cell[:tree], cell[tree] // 2, *cell[tree + 1 :])
            above[parent] = above.get(parent, 0) + count
        table, shape[tree] = above, (shape[tree] + 1) // 2
        found += listed(table, shape)
    return found


def listed(table: Table, shape: list[int]) -> list[int]:
    """The counts of all cells in order, empty ones too."""
    found = []
    for number in range(prod(shape)):
        cell = []
        for size in reversed(shape):
            number, place = divmod(number, size)
            cell.append(place)
        found.append(table.get(tuple(reversed(cell)), 0))
    return found


def sensitivities(axes: int, levels: int, most: int) -> list[int]:
    """How far the counts of neighbours are apart, at most: in L1, and their squares in L2.

    Args: most: how many records change, all of one person; 1 where records are protected alone.
    """
    # over one axis alone the last level is n, which is public and the same for neighbours
    moving = levels - (levels > 1 and axes == 1)
    return [2 * most * moving, 2 * most**2 * moving]


def own_shares(honest: int, log_ratio: Fraction, count: int, source: Source) -> list[int]:
    """A node's noise of so many counts: Polya(1/h) − Polya(1/h) each, with q = e^(−ε/L1)."""
    with localcontext() as context:
        context.prec = DIGITS
        if honest == 1:
            drawn = [geometric(log_ratio, source) for _ in range(2 * count)]
        else:
            drawn = polyas(Fraction(1, honest), log_ratio, 2 * count, source)
    return [up - down for up, down in zip(drawn[:count], drawn[count:], strict=True)]


def share(own: list[int], noise: list[int], zeros: list[int], ring: int) -> list[int]:
    """The release of a node, once: a share of each count. Args: zeros: zero shares. ring: bits."""
    return [sum(each) % (1 << ring) for each in zip(own, noise, zeros, strict=True)]


def total(shares: list[list[int]], ring: int) -> list[int]:
    """The noisy counts, read as signed numbers."""
    half = 1 << (ring - 1)
    return [(sum(each) + half) % (1 << ring) - half for each in zip(*shares, strict=True)]
