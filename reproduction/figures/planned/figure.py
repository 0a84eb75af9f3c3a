"""Every protocol on the bank data at ε = 1: the planned squared error beside that of whole runs.

A run is one call of `umpc.simulation`: the sessions of all nodes, the dealer and the coordinator in
one process, with the code that real processes run. Estimates are compared with the statistic of all
4,521 records.
"""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.drawing import bars
from reproduction.figures.draws import stream_of
from reproduction.figures.figure import Agreement, Figure, Measured, Point, Row
from reproduction.figures.planned.cases import case_of, sums_of_all_pairs_once
from umpc.simulation import simulate
from umpc_papers.central.settings import MECHANISMS

FACTOR = 1.5
RUNS = 400
BATCHES = 4
OWN = ("kendall_tau", "u-mpc")
CURATOR = ("kendall_tau", "central")
HEAVY = "hajek_subsampled"
"""This mechanism's noise has no fourth moment, so its squared errors settle slowly."""
PLANNED: tuple[tuple[str, tuple[str, str], dict[str, str], float], ...] = (
    ("u-mpc, 2n pairs", OWN, {"edges": "2n"}, 1),
    ("u-mpc, sampling = noise", OWN, {"edges": "456621"}, 0.3),
    ("u-mpc, no dealer", OWN, {"backend": "garbled", "preprocessing": "none"}, 0.25),
    ("grid, all pairs", ("kendall_tau", "grid"), {}, 0.05),
    ("bell-2pc, Laplace", ("kendall_tau", "bell-2pc"), {"noise": "pair_laplace"}, 0.2),
    ("bell-2pc, response", ("kendall_tau", "bell-2pc"), {"noise": "randomised_response"}, 0.25),
    ("bell-2pc, groups", ("kendall_tau", "bell-2pc"), {"noise": "group_laplace"}, 0.2),
    ("bell-ldp", ("kendall_tau", "bell-ldp"), {}, 1),
    ("ghazi-ldp", ("kendall_tau", "ghazi-ldp"), {}, 1),
    ("ghazi-rounds", ("kendall_tau", "ghazi-rounds"), {}, 1),
    ("ghazi-shuffle", ("kendall_tau", "ghazi-shuffle"), {}, 0.5),
    ("bell-auc, AUC", ("auc", "bell-auc"), {}, 1),
    ("u-mpc, AUC", ("auc", "u-mpc"), {"edges": "2n"}, 1),
    ("gopa, mean", ("mean", "gopa"), {}, 1),
    ("local-mean", ("mean", "local-mean"), {}, 1),
    ("u-mpc, mean", ("mean", "u-mpc"), {"edges": "all"}, 1),
    *(
        (f"curator, {n.replace('_', ' ')}", CURATOR, {"noise": n}, 5 if n == HEAVY else 1)
        for n in MECHANISMS
    ),
)
"""Each line: its label, statistic and protocol, the study's other settings, its part of RUNS."""


def points(quick: bool) -> list[Point]:
    found = []
    for place, (label, (statistic, protocol), changes, part) in enumerate(PLANNED):
        runs = 2 if quick else max(1, round(RUNS * part / BATCHES))
        facts = {"statistic": statistic, "protocol": protocol, "changes": changes, "runs": runs}
        found.append(Point(label, float(place), 1 if quick else BATCHES, facts))
    return found


def measure(point: Point, seed: bytes) -> Measured:
    facts = point.facts
    case = case_of(facts["statistic"])
    study = case.study(facts["protocol"], facts["changes"])
    with sums_of_all_pairs_once():
        runs = [
            simulate(study, case.tables, stream_of(seed, run).bytes) for run in range(facts["runs"])
        ]
    return {"squared_error": [(run.report.estimate - case.statistic) ** 2 for run in runs]}


def predict(point: Point) -> float:
    case = case_of(point.facts["statistic"])
    return case.predicted(case.study(point.facts["protocol"], point.facts["changes"]))


def ratio(row: Row) -> float:
    return row.means["squared_error"] / row.predicted


def agreement(rows: Sequence[Row]) -> Agreement:
    beyond = [row.series for row in rows if not 1 / FACTOR < ratio(row) < FACTOR]
    said = ", ".join(f"{row.series} {_with_error(row)}" for row in rows)
    verdict = "disagrees" if len(beyond) == len(rows) else "in part" if beyond else "agrees"
    return Agreement(verdict, f"Measured over predicted: {said}.")


def _with_error(row: Row) -> str:
    return f"{ratio(row):.2f} ± {row.errors['squared_error'] / row.predicted:.2f}"


FIGURE = Figure(
    name="plan-figure-1",
    title="What umpc plan predicts",
    quantity="squared_error",
    claim=f"umpc's own: the error that `umpc plan` predicts is within a factor of {FACTOR} of the "
    "measured for every protocol (mean squared error, bank data, ε = 1).",
    points=points,
    measure=measure,
    predict=predict,
    agreement=agreement,
    data="bank",
    draw=bars(
        "squared_error",
        "mean squared error",
        "bank data, ε = 1: what is predicted and what whole runs miss",
    ),
)
