"""Table 2: sampling rules of E, over |E|: the ratio of pairs with the same job in the bank data.

Balanced E is `umpc.ustat.sampling.balanced`. The others are the paper's comparisons. Uniform
sampling draws |E| of all pairs. Bernoulli sampling takes each pair with the same probability; its
sum is divided by the number of pairs that came, or by the expected number. Their noise covers the
greatest degree of the E that came, as the paper's sensitivity δ_G Δf does. That degree depends on E
alone, so the guarantee holds. Each squared error is the mean over NOISES draws of noise for one E.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from reproduction.baselines.coins import sample_discrete_laplace
from reproduction.figures.drawing import Panel, panels
from reproduction.figures.draws import bits_of, stream_of
from reproduction.figures.figure import Agreement, Figure, Measured, Point, Row, row_at
from reproduction.figures.paper003.claims import verdict, worst
from reproduction.figures.paper003.data import load, pair_values
from reproduction.figures.paper003.theory import moments
from umpc.dp.calibration import DiscreteLaplace
from umpc.ustat.sampling import balanced

RECORDS = 4521
PAIRS = RECORDS * (RECORDS - 1) // 2
EDGES = (RECORDS // 2, 2 * RECORDS, 8 * RECORDS, 32 * RECORDS, PAIRS // 2)
"""From half a pair a record to half of all pairs: the paper says "|E| = 0.5" without a unit."""
RULES = ("balanced", "uniform", "Bernoulli", "Bernoulli over the expected |E|")
PRINTED = {"balanced": 2.2e-6, "uniform": 2.7e-6, "Bernoulli": 9.1e-6}
EPSILON = Fraction(1)
NOISES = 8
GRAPHS = 4
"""Number of graphs for the mean squared degree that theory needs."""


def points(quick: bool) -> list[Point]:
    found = []
    for edges in EDGES[:2] if quick else EDGES:
        runs = 3 if quick else 15 if edges == PAIRS // 2 else 100
        found += [
            Point(rule, edges, 1 if quick else 4, {"rule": rule, "runs": runs}) for rule in RULES
        ]
    return found


@lru_cache(maxsize=1)
def all_pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each pair's two records, and whether they have the same job."""
    first, second = (side.astype(np.int16) for side in np.triu_indices(RECORDS, 1))
    (job,) = load("jobs", RECORDS).columns.values()
    return first, second, job[first] == job[second]


def draw(rule: str, edges: int, seed: bytes) -> tuple[float, int, int]:
    """One E: its number of equal pairs, its size, and its greatest degree."""
    if rule == "balanced":
        pairs = balanced(RECORDS, edges, stream_of(seed, "edges").words)
        return int(pair_values(load("jobs", RECORDS), pairs).sum()), edges, -(-2 * edges // RECORDS)
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint64))
    size = edges if rule == "uniform" else int(rng.binomial(PAIRS, edges / PAIRS))
    chosen = rng.choice(PAIRS, size, replace=False, shuffle=False)
    first, second, equal = all_pairs()
    degrees = np.bincount(first[chosen], minlength=RECORDS) + np.bincount(
        second[chosen], minlength=RECORDS
    )
    return int(equal[chosen].sum()), size, int(degrees.max())


def divisor(rule: str, edges: int, size: int) -> int:
    return edges if rule == RULES[3] else size


def measure(point: Point, seed: bytes) -> Measured:
    rule, edges, exact = point.facts["rule"], int(point.x), moments("jobs", RECORDS).mean
    errors, degrees = [], []
    for run in range(point.facts["runs"]):
        own = stream_of(seed, run).bytes(32)
        total, size, degree = draw(rule, edges, own)
        bits, ratio = bits_of(own, "noise"), EPSILON / degree
        noisy = total + np.array([sample_discrete_laplace(ratio, bits) for _ in range(NOISES)])
        errors.append(float(np.mean((noisy / divisor(rule, edges, size) - exact) ** 2)))
        degrees.append(float(degree))
    return {"squared_error": errors, "greatest_degree": degrees}


def predict(point: Point) -> float:
    """The error of E, and of noise for the degrees of GRAPHS other graphs.

    The error of E is exact, and for Bernoulli sampling to first order in 1/|E|.
    """
    rule, edges, exact = point.facts["rule"], int(point.x), moments("jobs", RECORDS)
    graphs = [
        draw(rule, edges, stream_of(bytes(32), edges, graph).bytes(32)) for graph in range(GRAPHS)
    ]
    noise = (
        np.mean([DiscreteLaplace(EPSILON / degree).variance for *_, degree in graphs]) / edges**2
    )
    if rule == "balanced":
        return float(exact.of_balanced(edges) + noise)
    left = 1 - edges / PAIRS
    return float(
        (exact.square * left / edges if rule == RULES[3] else exact.of_uniform(edges)) + noise
    )


def agreement(rows: Sequence[Row]) -> Agreement:
    least, like, most, parts = True, False, 0.0, []
    for edges in sorted({row.x for row in rows}):
        own = {rule: row_at(rows, rule, edges).means["squared_error"] for rule in RULES}
        predicted = {rule: row_at(rows, rule, edges).predicted for rule in RULES}
        least &= predicted["balanced"] == min(predicted.values()) < max(predicted.values())
        factors = {rule: own[rule] / own["balanced"] for rule in RULES[1:]}
        like |= all(
            0.7 < factors[rule] * PRINTED["balanced"] / PRINTED[rule] < 1.4
            for rule in ("uniform", "Bernoulli")
        )
        most = max(most, *factors.values())
        parts.append(
            f"{edges:,.0f}: {own['balanced']:.2g} "
            f"({', '.join(f'{f:.2f}' for f in factors.values())})"
        )
    printed = PRINTED["uniform"] / PRINTED["balanced"], PRINTED["Bernoulli"] / PRINTED["balanced"]
    return Agreement(
        verdict(least, like),
        "By |E|, the error of balanced sampling, and by how much those of uniform, Bernoulli, "
        f"and Bernoulli over the expected |E| are larger: {'; '.join(parts)}. By theory balanced "
        f"sampling is {'the best' if least else 'not'} {'at' if least else 'the best at'} every "
        f"|E|. Printed are factors of {printed[0]:.1f} and {printed[1]:.1f}; the largest here is "
        f"{most:.1f}, and {'one' if like else 'no'} |E| shows both. {worst(rows)}",
    )


FIGURE = Figure(
    name="003-table-2",
    title="Balanced, uniform and Bernoulli sampling",
    quantity="squared_error",
    claim="Balanced sampling beats sampling without replacement and Bernoulli sampling: 2.2e-6, "
    "2.7e-6, 9.1e-6 (ε = 1, "
    '"|E| = 0.5").',
    points=points,
    measure=measure,
    predict=predict,
    agreement=agreement,
    data="bank",
    draw=panels(
        Panel("squared_error", "edges |E|", "mean squared error"),
        Panel("greatest_degree", "edges |E|", "greatest degree of a record"),
        quantity="squared_error",
        title="Same job, bank data, n = 4,521, ε = 1",
    ),
)
