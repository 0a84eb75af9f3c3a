"""Random studies of a model-based test, and their sums by plain fractions.

Nothing of umpc computes here but E itself: its pairs follow from the report's joint seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

from umpc.mpc.attempt import edges_of
from umpc.study.document import Study
from umpc.study.parts import FieldText

Record = dict[str, int]
Records = list[list[Record]]
"""The records of each node, in the order in which it numbered them for an attempt."""
Entries = dict[str, Any]

FIELDS = (
    FieldText("age", "0", "63", whole=True),
    FieldText("balance", "0", "127", whole=True),
    FieldText("wide", "0", "4000", whole=True),
)
NARROW, WIDE = ("age", "balance"), ("wide", "age")
"""Columns that are compared by tables, and such that are compared by keys."""
KERNEL_FILE = "model_kernels.py"
KERNEL = """\
import umpc


def both(a, b):
    return umpc.sign(a.age - b.age) * umpc.sign(a.balance - b.balance), abs(a.age - b.age)
"""
EXTREME = 30.0
"""Standard deviations of the noise beyond which a result is wrong. Laplace noise is farther away
with a probability of exp(-30 √2) < 4e-19, and sums of it or Gaussian noise with a smaller one.
"""
ROUNDING = 1e-9
"""The largest error of a report's floating-point numbers, relative to sums of at most 4000²."""


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


PLAIN: dict[str, Callable[[Sequence[int], Sequence[int]], tuple[Fraction, ...]]] = {
    "gini_mean_difference": lambda a, b: (Fraction(abs(a[0] - b[0])),),
    "variance": lambda a, b: (Fraction((a[0] - b[0]) ** 2, 2),),
    "duplicate_pair_ratio": lambda a, b: (Fraction(a[0] == b[0]),),
    "covariance": lambda a, b: (Fraction((a[0] - b[0]) * (a[1] - b[1]), 2),),
    "kendall_tau": lambda a, b: (Fraction(sign(a[0] - b[0]) * sign(a[1] - b[1])),),
    "kendall_tau_b": lambda a, b: (
        Fraction(sign(a[0] - b[0]) * sign(a[1] - b[1])),
        Fraction(a[0] != b[0]),
        Fraction(a[1] != b[1]),
    ),
    "both": lambda a, b: (
        Fraction(sign(a[0] - b[0]) * sign(a[1] - b[1])),
        Fraction(abs(a[0] - b[0])),
    ),
}
"""Statistic → the values of its kernels on two records, each given by the study's columns."""
ONE_COLUMN = ("gini_mean_difference", "variance", "duplicate_pair_ratio")
OF_GRIDS = ("kendall_tau", "gini_mean_difference", "covariance")
ALONE: Entries = {"dealer": None, "preprocessing": "none"}
GRID: Entries = {"backend": "grid", "edges": "all"}
VECTOR: Entries = {
    "protocol": "vector",
    "statistic": None,
    "columns": None,
    "kernel": f"{KERNEL_FILE}:both",
    "estimator": "means",
    "fields": FIELDS[:2],
}
PROTOCOLS: dict[str, Entries] = {
    "tables": {"backend": "shared"},
    "keys": {"backend": "shared"},
    "grid": GRID,
    "vector": VECTOR,
    "garbled": ALONE | {"backend": "garbled"},
    "triples": ALONE | {"backend": "triples"},
    "grid without a dealer": ALONE | GRID,
}
DEALT = ("tables", "keys", "grid", "vector")
LOUD: Entries = {"epsilon": "1e9", "noise": "distributed", "max_colluding": 0}
"""Next to no noise."""
NOISES: tuple[Entries, ...] = (
    LOUD,
    LOUD,
    {"epsilon": "4", "noise": "in_mpc"},
    {"epsilon": "7/2", "noise": "distributed", "max_colluding": 1},
    {"epsilon": "1/2", "noise": "distributed"},
)
NOISES_OF_VECTORS: tuple[Entries, ...] = (
    {"epsilon": "1e9", "noise": "laplace"},
    {"epsilon": "3", "noise": "laplace"},
    {"epsilon": "2", "noise": "gaussian", "delta": "1e-6"},
)


def random_study(rng: Random, name: str, kind: str) -> Entries:
    """The entries of a study. Args: kind: one of PROTOCOLS."""
    entries: Entries = {"name": name, "edges": rng.choice(["1n", "2n", "all", "all", "9"])}
    if kind == "vector":
        return entries | VECTOR | rng.choice(NOISES_OF_VECTORS)
    is_grid = kind.startswith("grid")
    statistics = OF_GRIDS if is_grid else [each for each in PLAIN if each != "both"]
    statistic = rng.choice(statistics)
    columns = list(WIDE if kind == "keys" else NARROW)
    if statistic in ONE_COLUMN:
        columns = columns[:1]
    entries |= {"statistic": statistic, "columns": columns, "fields": FIELDS}
    return entries | PROTOCOLS[kind] | rng.choice(NOISES)


def random_records(rng: Random) -> list[Record]:
    """One site's records, with ties and both ends of every field."""

    def value(most: int) -> int:
        return rng.choice([0, most, rng.randrange(4), rng.randrange(most + 1)])

    count = rng.randint(4, 9)
    return [{each.name: value(int(each.upper)) for each in FIELDS} for _ in range(count)]


def table_of(records: Sequence[Record]) -> str:
    """The records as a CSV file."""
    lines = [",".join(str(value) for value in record.values()) for record in records]
    return "\n".join([",".join(each.name for each in FIELDS), *lines]) + "\n"


def pairs_of(study: Study, report: Mapping[str, Any], records: Records) -> Iterator[Sequence]:
    """Yield every pair of records in E; of a replay, which does not tell E, every pair."""
    if study.edges == "all" or report["replayed"]:
        yield from combinations([each for own in records for each in own], 2)
        return
    counts = [len(own) for own in records]
    assert report["records_by_node"] == counts, f"{counts} records were expected, as they are"
    classes = zip(report["first_class_by_node"], counts, strict=True)
    seed = bytes.fromhex(report["joint_seed"])
    graph = edges_of(study, seed, [(first, count - first) for first, count in classes])
    for owners, cell in graph.cells.items():
        for rows in zip(*cell.edges(0, cell.count), strict=True):
            yield [records[owner][row] for owner, row in zip(owners, rows, strict=True)]


def check_answer(study: Study, entries: Entries, report: Mapping[str, Any], records: Records):
    """Check that every mean of a report is the plain one on these records, up to its noise.

    A replay of sampled pairs, of which no run told E, is only checked for the range of all pairs.
    """
    plain = PLAIN[entries["statistic"] or "both"]
    columns = entries["columns"] or NARROW
    values = [
        plain(*([record[name] for name in columns] for record in pair))
        for pair in pairs_of(study, report, records)
    ]
    is_exact = study.edges == "all" or not report["replayed"]
    assert len(values) == report["edges"] or report["replayed"], "E has another size"
    assert report["epsilon"] == float(Fraction(entries["epsilon"]))
    for number, each in enumerate(report["sums"]):
        of_pairs = [value[number] for value in values]
        exact = sum(of_pairs) / len(of_pairs)
        low, high = (exact, exact) if is_exact else (min(of_pairs), max(of_pairs))
        bound = EXTREME * each["noise_std"] + ROUNDING * (1 + abs(float(exact)))
        assert low - bound <= each["mean"] <= high + bound, (
            f"{entries['name']}: mean {number} is {each['mean']}, and {float(low)} to "
            f"{float(high)} on the records as they are, where the noise moves it by {bound}"
        )
