"""`python -m reproduction.baselines`: a small table for each baseline of the papers, in a minute.

python -m reproduction.baselines [NAME ...] [--runs RUNS]

Tables of errors compare the prediction with measured runs on tables and graphs that the command
makes. The other tables are computed, and the same each time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from bench.table import show
from reproduction.baselines import bins_table, cost_table, error_tables, gain_table, privacy_tables
from reproduction.baselines.error_tables import Printed

ERRORS: dict[str, Callable[[int], Printed]] = {
    "textbook": error_tables.textbook,
    "gopa": error_tables.gopa,
    "median": error_tables.median,
    "triangles": error_tables.triangles,
    "uniformity": error_tables.uniformity,
    "dpsgd": error_tables.dpsgd,
    "bins": bins_table.bins,
}
"""Tables that measure, from the number of runs."""

COMPUTED: dict[str, Callable[[], Printed]] = {
    "collusion": privacy_tables.collusion,
    "amplification": privacy_tables.amplification,
    "accounting": privacy_tables.accounting,
    "cost": cost_table.cost_of_all,
    "gain": gain_table.gain,
}
"""Tables that need no run."""

NAMES = (*ERRORS, *COMPUTED)


def positive(text: str) -> int:
    """An argument that must be an integer above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected an integer above 0, got {text}")
    return number


def make(name: str, runs: int) -> Printed:
    """One table by its name."""
    return ERRORS[name](runs) if name in ERRORS else COMPUTED[name]()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the chosen tables, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.baselines", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"tables to print: {', '.join(NAMES)}; default all"
    )
    parser.add_argument(
        "--runs", type=positive, default=100, help="most runs of a measured error (default 100)"
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no table {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in given.names or NAMES:
        show(*make(name, given.runs))


if __name__ == "__main__":
    main()
