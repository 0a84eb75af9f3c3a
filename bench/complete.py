"""All pairs of the bank data over 4 nodes: the exact sum without noise, and the error with noise.

With all pairs there is no sampling error. Replacing a record changes the sum of n(n − 1)/2 signs by
at most 2(n − 1). So at ε the mean has discrete Laplace noise of variance 8(n − 1)²/ε² over (n(n −
1)/2)², an MSE of 32/(n²ε²).
"""

from __future__ import annotations

from statistics import median

import numpy as np

from bench.harness import BANK, RECORDS, bank_table, site
from bench.table import Figure, show

NODES = 4
RUNS = 20
EXACT_SUM = 516_843
"""The bank data's Σ sign(Δage)·sign(Δbalance) over all pairs."""
SIMULATED = 200_000
"""Simulated means, for the range that 99 of 100 correct benchmarks are in."""


def main() -> list[Figure]:
    table, source = bank_table()
    pairs = RECORDS * (RECORDS - 1) // 2
    with site(table, NODES) as here:
        silent = here.study(edges="all", backend="shared", epsilon="1000000000")
        exact = silent["estimate"]
        reports = [here.study(edges="all", backend="shared") for _ in range(RUNS)]
        memory = max(here.memory().values())
    errors = [(report["estimate"] - exact) ** 2 for report in reports]
    mse, predicted = sum(errors) / RUNS, 32 / RECORDS**2
    low, high = _usual_range()
    low, high = low * predicted, high * predicted
    usual = f"{predicted:.3g}; 99 % of runs: {low:.2g} to {high:.2g}"
    is_as_predicted = low <= mse <= high
    wall = median(report["wall"] for report in reports)
    total = round(exact * pairs)
    rows = [
        ("pairs", f"{silent['edges']:,}"),
        ("sum without noise", f"{total:,}"),
        ("wall, median", f"{wall:.1f} s"),
        ("online, median", f"{median(report['seconds_online'] for report in reports):.1f} s"),
        ("bytes online", f"{silent['bytes_online']:,}"),
        ("bytes offline", f"{silent['bytes_offline']:,}"),
        ("largest process", f"{memory / 2**20:.0f} MiB"),
        (f"mean squared error at ε = 1, {RUNS} runs", f"{mse:.3g}"),
        ("predicted", usual),
    ]
    show(f"{source}: Kendall, all pairs, {NODES} nodes and a dealer", ("", "measured"), rows)
    name = f"bank, all pairs, {NODES} nodes"
    figures = [
        Figure(f"{name}: wall", f"{wall:.1f} s", "under 90 s", wall < 90),
        Figure(
            f"{name}: largest process",
            f"{memory / 2**20:.0f} MiB",
            "under 400 MiB",
            memory < 400 << 20,
        ),
        Figure(f"{name}: MSE at ε = 1", f"{mse:.3g}", usual, is_as_predicted),
    ]
    if BANK.exists():
        figures.append(
            Figure(f"{name}: sum without noise", f"{total:,}", f"{EXACT_SUM:,}", total == EXACT_SUM)
        )
    return figures


def _usual_range() -> tuple[float, float]:
    """Return the range of 99 of 100 means of RUNS squared Laplace draws, per their expectation."""
    exponential = np.random.default_rng(1).exponential(size=(SIMULATED, RUNS))
    low, high = np.quantile((exponential**2 / 2).mean(axis=1), [0.005, 0.995])
    return float(low), float(high)
