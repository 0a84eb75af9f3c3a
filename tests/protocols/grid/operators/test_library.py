"""umpc.protocols.grid.operators: the library's statistics equal the clear sum over all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.protocols.grid.operators.sums import clear_sum, form_sum, random_columns
from tests.support.mpc_studies import make_schema
from umpc.protocols.grid.operators import compile_grid
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import LIBRARY

SCHEMA = make_schema(
    x=("-2", "2"), y=("-1", "1.5", "0.5"), z=("0", "2"), label=("0", "2"), group=("0", "1")
)
COLUMNS = {"x": ["x"], "y": ["y"], "score": ["y"], "label": ["label"], "x...": ["x", "z"]}
SMALL = sorted(name for name, statistic in LIBRARY.items() if statistic.degree <= 2)


def kernels_of(name: str) -> tuple[list[Kernel], str]:
    statistic = LIBRARY[name]
    columns = [column for argument in statistic.arguments for column in COLUMNS[argument]]
    two_sample = statistic.sampling == "two_sample"
    parameters = {each.name: 3 for each in statistic.parameters if each.default is None}
    found = statistic.expressions(columns, parameters)
    kernels = [Kernel(each, SCHEMA, statistic.degree, not two_sample) for each in found]
    return kernels, "group" if two_sample else ""


@pytest.mark.parametrize("records", [0, 1, 2, 7, 30])
@pytest.mark.parametrize("name", SMALL)
def test_a_statistic_equals_its_clear_sum(name, records):
    kernels, label = kernels_of(name)
    grid = compile_grid(kernels, SCHEMA, label=label)
    columns = random_columns(SCHEMA, np.random.default_rng(records), records)
    table = grid.tabulate(columns)
    for kernel, form in zip(kernels, grid.forms, strict=True):
        assert form_sum(form, table) == clear_sum(kernel, columns, label)
