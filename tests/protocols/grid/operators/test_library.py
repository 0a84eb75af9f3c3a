"""umpc.protocols.grid.operators: the library's statistics equal the clear sum over all pairs."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from tests.protocols.grid.operators.sums import clear_sum, form_sum, random_columns
from tests.support.mpc_studies import make_schema
from umpc.protocols.grid.operators import Grid, compile_grid
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import LIBRARY

SCHEMA = make_schema(
    x=("-2", "2"), y=("-1", "1.5", "0.5"), z=("0", "2"), label=("0", "2"), group=("0", "1")
)
COLUMNS = {"x": ["x"], "y": ["y"], "score": ["y"], "label": ["label"], "x...": ["x", "z"]} | {
    "time": ["x"],
    "event": ["group"],
    "stratum": ["z"],
    "z": ["z"],
    "score_a": ["y"],
    "score_b": ["z"],
}
SMALL = sorted(name for name, statistic in LIBRARY.items() if statistic.degree == 2)


@cache
def compiled(name: str) -> tuple[Grid, list[Kernel], str]:
    """Return a statistic's grid, its kernels and the label of its classes."""
    statistic = LIBRARY[name]
    columns = [column for argument in statistic.arguments for column in COLUMNS[argument]]
    two_sample = statistic.sampling == "two_sample"
    parameters = {each.name: 3 for each in statistic.parameters if each.default is None}
    found = statistic.expressions(columns, parameters)
    kernels = [Kernel(each, SCHEMA, statistic.degree, not two_sample) for each in found]
    label = "group" if two_sample else ""
    return compile_grid(kernels, SCHEMA, label=label), kernels, label


def domain(kernels: list[Kernel], label: str) -> dict[str, np.ndarray]:
    """Return every record of the fields that the kernels use."""
    names = sorted({name for kernel in kernels for name in kernel.fields} | ({label} - {""}))
    fields = [SCHEMA[name] for name in names]
    values = product(*(range(field.lower_units, field.upper_units + 1) for field in fields))
    return dict(zip(names, np.array(list(values), dtype=np.int64).T, strict=True))


def values(kernel: Kernel, columns: dict[str, np.ndarray], label: str) -> np.ndarray:
    """Return the kernel of all pairs of records, (records, records); 0 within a class."""
    count = len(next(iter(columns.values())))
    a, b = (rows.ravel() for rows in np.mgrid[:count, :count])
    first, second = ({name: column[rows] for name, column in columns.items()} for rows in (a, b))
    if not label:
        return kernel.evaluate([first, second]).reshape(count, count)
    forward, backward = kernel.evaluate([first, second]), kernel.evaluate([second, first])
    found = np.where(first[label] < second[label], forward, 0)
    return np.where(first[label] > second[label], backward, found).reshape(count, count)


@pytest.mark.parametrize("name", SMALL)
def test_every_entry_is_the_kernel_of_every_pair_of_records(name):
    grid, kernels, label = compiled(name)
    columns = domain(kernels, label)
    count = len(next(iter(columns.values())))
    singles = [{n: column[row : row + 1] for n, column in columns.items()} for row in range(count)]
    tables = np.array([grid.tabulate(single) for single in singles])
    for kernel, form in zip(kernels, grid.forms, strict=True):
        wanted = values(kernel, columns, label).view(np.uint64)
        assert np.array_equal(tables @ np.array([form.apply(each) for each in tables]).T, wanted)
        assert np.array_equal(tables @ form.diagonal(), np.diag(wanted))
        assert np.abs(wanted.view(np.int64)).max() <= form.magnitude


@pytest.mark.parametrize("records", [0, 1, 2, 30])
@pytest.mark.parametrize("name", SMALL)
def test_a_statistic_equals_its_clear_sum(name, records):
    grid, kernels, label = compiled(name)
    columns = random_columns(SCHEMA, np.random.default_rng(records), records)
    table = grid.tabulate(columns)
    for kernel, form in zip(kernels, grid.forms, strict=True):
        assert form_sum(form, table) == clear_sum(kernel, columns, label)
