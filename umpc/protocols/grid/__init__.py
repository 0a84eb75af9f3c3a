"""All pairs without pairs: sums over all sets of records as forms of one masked table.

| folder or file | what it is |
|---|---|
| `operators/` | from kernels to a table and to the sums as forms of it |
"""
