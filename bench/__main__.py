"""`python -m bench`: every figure, one table after the other, and at last all targets in one.

`python -m bench bank complete` runs these parts only.
"""

import sys
from importlib import import_module

from bench.table import show_targets

PARTS = (
    "gates",
    "oblivious",
    "garbling",
    "bank",
    "million",
    "network",
    "scaling",
    "nodes",
    "complete",
)

names = sys.argv[1:] or PARTS
unknown = [name for name in names if name not in PARTS]
if unknown:
    sys.exit(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(PARTS)}")
figures = []
for name in names:
    figures += import_module(f"bench.{name}").main() or []
show_targets(figures)
