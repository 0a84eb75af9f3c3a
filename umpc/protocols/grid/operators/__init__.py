"""From kernels to a table of cells, and to every sum as a form of the table.

    grid = compile_grid(kernels, schema, label=…)
    h = grid.tabulate(columns)                        a node's table; H is the sum of all nodes'
    2·S = ⟨H, form.apply(H)⟩ − ⟨form.diagonal(), H⟩   modulo 2^64, over pairs
    6·S = form.value(H) + ⟨form.diagonal(), H⟩        over triples, see `triples.py` for masks

S counts the kernel's units, as everywhere. A table is a histogram, or more: where a kernel
multiplies values of different records (variance, covariance), a record adds values and not 1, so a
node takes `tabulate`, and `cell_of` only where `grid.counts` holds.

Two columns of any width have `compile_dyadic(kernels, resolution)` with the same methods.

| file | what it is |
|---|---|
| `compiler.py` | kernels to a grid; what is refused |
| `splitting.py` | a kernel's polynomial as terms of single records' factors and shared bits |
| `axis.py` | a number that one record makes, and comparisons of two as intervals |
| `layout.py` | the table: axes, features, tabulation of records, and its limits |
| `leg.py` | an operator along one axis, in linear time |
| `matrix.py` | A·v as products of legs, and a sum over pairs as a form of the table |
| `triples.py` | a sum over triples as a form of the table |
| `dyadic.py` | sign products of two wide columns at a resolution |
| `cuts.py` | public cut points of a field |
"""

from umpc.protocols.grid.operators.axis import Axis
from umpc.protocols.grid.operators.compiler import Grid, compile_grid, least_cells
from umpc.protocols.grid.operators.dyadic import (
    DyadicGrid,
    compile_dyadic,
    ties_of_uniform_columns,
)
from umpc.protocols.grid.operators.layout import MAX_CELLS
from umpc.protocols.grid.operators.matrix import Form
from umpc.protocols.grid.operators.triples import TripleForm

__all__ = [
    "MAX_CELLS",
    "Axis",
    "DyadicGrid",
    "Form",
    "Grid",
    "TripleForm",
    "compile_dyadic",
    "compile_grid",
    "least_cells",
    "ties_of_uniform_columns",
]
