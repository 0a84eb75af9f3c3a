"""The table of bytes and operations that the central protocols and other baselines take."""

from __future__ import annotations

from fractions import Fraction

from reproduction.baselines.cost import (
    cost,
    dpsgd_cost,
    gopa_cost,
    median_cost,
    triangles_cost,
)
from reproduction.baselines.dpsgd import PairwiseSgd
from reproduction.baselines.error_tables import KENDALL, Printed, federation
from umpc_papers.central.central_mechanisms import NAMES, Choice, MedianOfMeans
from umpc_papers.central.settings import SUBSAMPLED
from umpc_papers.local.estimate import LocalCost

RECORDS = 4_521
NODES = 4
ONE = Fraction(1)


def cost_of_all() -> Printed:
    """Bytes to the curator and its operations, for tables of the bank data's size."""
    counts = [RECORDS // NODES] * (NODES - 1) + [RECORDS - (NODES - 1) * (RECORDS // NODES)]
    costs = {}
    for name in NAMES:
        choice = Choice(name, KENDALL, ONE, 2 * RECORDS if name in SUBSAMPLED else 0)
        costs[f"{name}, Kendall's tau"] = cost(choice, counts)
    laplace = Choice("laplace", KENDALL, ONE)
    costs["median of 19 of laplace"] = median_cost(MedianOfMeans(laplace, 19), counts)
    costs["triangles, 500 nodes"] = triangles_cost(500)
    costs["GOPA, 8 parties"] = gopa_cost(federation())
    ranking = PairwiseSgd(RECORDS, RECORDS // 2, 100, ONE, ONE, ONE, pairs=8)
    costs["DP-SGD, 100 steps, 5 features"] = dpsgd_cost(ranking, 5)
    title = f"Cost: {RECORDS:,} records at {NODES} nodes, where nothing else is said"
    columns = ("protocol", "bytes to the curator", "its operations")
    return Printed(title, columns, [_row(name, each) for name, each in costs.items()])


def _row(name: str, found: LocalCost) -> tuple[str, str, str]:
    return name, f"{found.message_bytes:,}", f"{found.coordinator_operations:,}"
