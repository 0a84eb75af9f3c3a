"""umpc.protocols.grid.operators.cuts: few and many records get the same numbers of cut points."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.mpc_studies import make_schema
from umpc.protocols.grid.operators import cuts
from umpc.protocols.grid.operators.cuts import Cuts

SCHEMA = make_schema(x=("0", "99"), y=("-10", "10", "0.5"))
CUTS = Cuts(
    SCHEMA,
    {"x": [1, 10, 21, 99], "y": [-19, 0, 4, 20]},
)


def by_definition(name: str) -> dict[int, int]:
    """Return each value in steps, and the number of cut points that it reaches."""
    field = SCHEMA[name]
    values = range(field.lower_units, field.upper_units + 1)
    return {value: sum(point <= value for point in CUTS.points[name]) for value in values}


def test_every_value_has_the_number_of_the_cut_points_that_it_reaches():
    """With more records than values the numbers are looked up in a table."""
    for name in CUTS.points:
        expected = by_definition(name)
        every = np.array(list(expected), dtype=np.int64)
        for column in (*np.split(every, len(every)), every[:-1], np.repeat(every, 3)[::-1]):
            found = CUTS.apply({name: column, "other": column})
            assert found[name].tolist() == [expected[value] for value in column.tolist()]
            assert found["other"] is column


@pytest.mark.parametrize("block", [1, 7, 1 << 15])
def test_numbers_do_not_depend_on_the_blocks_also_beyond_the_bounds(block, limit):
    """A block with a value beyond the bounds is searched, and the others are looked up."""
    limit(cuts, CACHED=block)
    every = np.arange(-30, 160, dtype=np.int64)
    (found,) = CUTS.apply({"x": every}).values()
    assert found.tolist() == [sum(point <= value for point in CUTS.points["x"]) for value in every]
    assert found.dtype == np.int64
    assert CUTS.apply({"x": every[:0]})["x"].tolist() == []
