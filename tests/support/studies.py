"""Shared by tests of whole studies: seeded randomness, small studies, tables, sums in the clear."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from tests.support.fields import number_field
from tests.support.protocols import flat_study, used, with_facts
from tests.support.signed import signed
from umpc.crypto.prg import Stream
from umpc.crypto.zero_shares import KeyAgreement
from umpc.mpc.attempt import SharedAttempt, edges_of
from umpc.protocols.registry import attempt_of
from umpc.study.attempt import commit
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.study.report import Report
from umpc.study.sizes import Member
from umpc.testing import lying
from umpc.ustat.hypergraph import Hypergraph
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

KENDALL = "sign(a.x - b.x) * sign(a.y - b.y)"
GINI = "abs(a.x - b.x)"
AUC = "(sign(a.x - b.x) + 1) * (1/2)"
TRIPLE = "a.x * b.x * c.x"
"""A kernel of three records: a product of three masked numbers."""
SPEARMAN = to_text(LIBRARY["spearman_rho"].expression(["x", "y"]))
"""A kernel of three records: comparisons of two owners each."""
SKEWNESS = to_text(LIBRARY["triples_skewness"].expression(["x"]))
"""A kernel of three records: comparisons of all three owners, by tables."""

LOUD = "1e12"
"""An ε so large that there is no noise: the exact sum comes out."""

CLASSES = FieldText.of_categories("label", ["case", "control"], public=True)
Columns = Mapping[str, np.ndarray]


@contextmanager
def compiled_once() -> Iterator[None]:
    """Derive everything that equal studies of equal sizes share only once.

    This is for tests of many runs. It covers plans, sizes, the laws of the noise, and E where it
    holds all sets of records.
    """
    programs, graphs, sizes = {}, {}, {}

    def compile_once(honest, kernels, ring, patterns, *, few):
        key = tuple(kernel.hash for kernel in kernels), ring, frozenset(patterns), few
        if key not in programs:
            programs[key] = honest(kernels, ring, patterns, few=few)
        return programs[key]

    def edges_once(honest, study, seed, classes):
        if study.edges != "all":
            return honest(study, seed, classes)
        key = study.degree, study.two_sample, tuple(classes)
        if key not in graphs:
            graphs[key] = honest(study, seed, classes)
        return graphs[key]

    def sizes_once(honest, study, members):
        found = honest(study, members)
        return sizes.setdefault(found, found)

    steps = {"compile_program": compile_once, "edges_of": edges_once, "of": sizes_once}
    with lying("everybody", **steps, **remembering("noise_of_sums")):
        yield


def remembering(*steps: str) -> dict[str, Callable]:
    """Return these steps of `umpc.testing`, so that each computes equal things only once."""
    return {step: _remember({}) for step in steps}


def _remember(known: dict) -> Callable:
    def remember(honest, *given, **named):
        key = honest, given, *named.items()
        if key not in known:
            known[key] = honest(*given, **named)
        return known[key]

    return remember


class Entropy:
    """Uniform bytes that are equal for equal seeds; a failing test prints the seed by its repr."""

    def __init__(self, seed: str):
        self.seed = seed
        self._stream = Stream(hashlib.sha256(seed.encode()).digest())

    def __call__(self, count: int) -> bytes:
        return self._stream.bytes(count)

    def __repr__(self) -> str:
        return f"Entropy({self.seed!r})"


def generator(label: str) -> np.random.Generator:
    return np.random.default_rng(
        np.frombuffer(hashlib.sha256(label.encode()).digest(), dtype=np.uint64)
    )


def make_study(
    kernels: str | Sequence[str] = KENDALL,
    nodes: int = 2,
    *,
    x: tuple[str, ...] = ("0", "3"),
    y: tuple[str, ...] = ("0", "3"),
    **changes,
) -> Study:
    """Return a study over those of x and y that its kernels use.

    The changes replace any of its entries. A two-sample study gets a public label as well.
    """
    texts = (kernels,) if isinstance(kernels, str) else tuple(kernels)
    fields = used((number_field("x", *x), number_field("y", *y)), texts)
    study = flat_study(
        name="study",
        statistic="custom",
        kernels=texts,
        fields=(*fields, CLASSES) if changes.get("sampling") == "two_sample" else fields,
        epsilon="1",
        edges="all",
        max_colluding=0,
        coordinator="coordinator",
        dealer=Participant("dealer", "dealer:1"),
        nodes=tuple(Participant(f"node-{i}", f"node-{i}:1") for i in range(nodes)),
    )
    return with_facts(study, **changes)


def library_study(
    name: str, fields: Sequence[FieldText], nodes: int, columns: Sequence[str], **changes
) -> Study:
    """Return a study of one of the library's statistics, over those of the fields that it uses.

    The changes are those of `make_study`, and `parameters` of the statistic.
    """
    statistic = LIBRARY[name]
    kernels = [to_text(e) for e in statistic.expressions(columns, changes.pop("parameters", None))]
    facts = {key: getattr(statistic, key) for key in ("degree", "estimator", "sampling")}
    is_two_sample = changes.get("sampling", statistic.sampling) == "two_sample"
    needed = {each.name for each in used(fields, kernels)}
    needed |= {each.name for each in fields if each.public and is_two_sample}
    fields = [each for each in fields if each.name in needed]
    return make_study(
        kernels,
        nodes,
        **({"statistic": name, "fields": tuple(fields), "epsilon": LOUD} | facts | changes),
    )


def table(
    x: Sequence[int], y: Sequence[int], label: Sequence[int] | None = None
) -> dict[str, np.ndarray]:
    columns = {"x": x, "y": y} | ({} if label is None else {"label": label})
    return {name: np.array(values, dtype=np.int64) for name, values in columns.items()}


def random_tables(
    counts: Sequence[int], label: str, low: int = 0, high: int = 3, classes: bool = False
) -> list[dict]:
    """Return a table of random x and y for each count; with classes, also a random label."""
    rng = generator(label)
    columns = [rng.integers(low, high, (2, count), endpoint=True) for count in counts]
    return [table(*xy, rng.integers(0, 2, xy.shape[1]) if classes else None) for xy in columns]


def by_class(study: Study, tables: Sequence[Columns]) -> list[Columns]:
    """Return the tables in the order in which edges number their records.

    In two-sample studies the first class comes first.
    """
    if not study.two_sample:
        return list(tables)
    label = study.label
    orders = [
        np.concatenate([np.flatnonzero(t[label] == 0), np.flatnonzero(t[label] == 1)])
        for t in tables
    ]
    return [
        {name: column[order] for name, column in t.items()}
        for t, order in zip(tables, orders, strict=True)
    ]


def clear_sums(study: Study, tables: Sequence[Columns], graph: Hypergraph) -> list[int]:
    """Return the sum of each kernel over E in the clear, in its units."""
    totals, tables = [0] * len(study.kernels), by_class(study, tables)
    for owners, cell in graph.cells.items():
        rows = cell.edges(0, cell.count)
        records = [
            {k: c[r] for k, c in tables[n].items()} for n, r in zip(owners, rows, strict=True)
        ]
        for number, kernel in enumerate(study.parsed_kernels):
            totals[number] += int(kernel.evaluate(records).sum(dtype=object))
    return totals


def graph_of(study: Study, found: Report) -> Hypergraph:
    """Return E as it follows from the published report."""
    classes = zip(found.first_class_by_node, found.records_by_node, strict=True)
    return edges_of(
        study,
        bytes.fromhex(found.joint_seed),
        [(first, records - first) for first, records in classes],
    )


def make_members(
    study: Study, counts: Sequence[int], label: str = "members", first: Sequence[int] | None = None
) -> tuple[list[Member], list[bytes]]:
    """Return members and openings as honest nodes make them.

    Args: first: the number of records of the first class, per node.
    """
    entropy = Entropy(label)
    openings = [entropy(32) for _ in counts]
    members = [
        signed(
            study,
            Member(
                each.name,
                count,
                commit(study.hash, each.name, opening),
                KeyAgreement(entropy(32)).public_key,
                of_first,
            ),
        )
        for each, count, opening, of_first in zip(
            study.nodes, counts, openings, first or [0] * len(counts), strict=True
        )
    ]
    return members, openings


def make_attempt(
    study: Study, counts: Sequence[int], label: str = "members", first=None
) -> SharedAttempt:
    return attempt_of(study, *make_members(study, counts, label, first))


STUDY = flat_study(
    name="kendall-2026",
    statistic="kendall_tau",
    kernels=("sign(a.age - b.age) * sign(a.balance - b.balance)",),
    fields=(
        FieldText("age", "0", "127", whole=True),
        FieldText("balance", "-1000", "1000", "0.01"),
    ),
    epsilon="1/2",
    edges="2n",
    max_colluding=2,
    coordinator="coordinator",
    dealer=Participant("dealer", "dealer.example.org:7100"),
    nodes=tuple(
        Participant(name, f"{name}.example.org:7100") for name in ("north", "south", "west")
    ),
)


def changed(**changes) -> Study:
    return with_facts(STUDY, **changes)
