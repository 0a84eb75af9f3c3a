"""`python -m bench`: what a user waits for, and at the end all targets in one table.

`python -m bench garbling network` prints the tables of other measurements, which have no targets. A
job that fails does not stop the others. The last lines name each job that failed and the reason,
and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from bench.jobs import Job, run_parts

PARTS = (
    "targets",
    "oblivious",
    "coins",
    "garbling",
    "network",
    "scaling",
    "nodes",
    "grid",
)
USUAL = ("targets",)
"""The parts that run when none is named."""


def part(name: str) -> Job:
    """Return the job that measures one part. The part's module is loaded when the job runs."""
    return lambda: import_module(f"bench.{name}").main()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Print what a user waits for, beside its target. It takes some minutes.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="PART",
        help=f"run these parts of {', '.join(PARTS)}; default: {', '.join(USUAL)}",
    )
    names = parser.parse_args(arguments).names or USUAL
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return run_parts(names, {name: part(name) for name in PARTS})


if __name__ == "__main__":
    sys.exit(main())
