"""Golden transcripts: who sends what to whom in whole small studies, by `umpc.simulation`.

A file has the studies of one backend. Sizes and order are what another implementation must send;
the digest of the contents is for ours alone, whose randomness comes from the study's name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np

from tests.support.fields import number_field
from tests.support.several import several
from tests.support.studies import CLASSES, Columns, Entropy, library_study, make_study
from tests.support.vector import vector_study
from tests.vectors.part import Part, Values
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.parts import FieldBins

Line = tuple[str, int, str, str, str, str]
"""Phase, round, sender, receiver, message, bytes."""
SMALL = {"x": "0 3", "y": "0 3"}
"""Fields whose comparisons are one look-up."""
WIDE = {"x": "-500 1500", "y": "0 99.5 0.5"}
"""A whole and a real field, whose comparisons take several steps."""
NO_DEALER = {"preprocessing": "none", "dealer": None}
TAU = {"statistic": "kendall_tau", "columns": "x y", "fields": SMALL, "edges": "all"}
GAMMA = {**TAU, "statistic": "goodman_kruskal_gamma"}
GINI = {"statistic": "gini_mean_difference", "columns": "x", "fields": SMALL, "edges": "all"}
AUC = {"statistic": "auc", "columns": "x", "fields": SMALL, "edges": "all"}
MEAN = {"statistic": "mean", "columns": "x", "fields": SMALL, "edges": "all"}
SKEWNESS = {**GINI, "statistic": "triples_skewness"}
SPEARMAN = {**TAU, "statistic": "spearman_rho"}
PRODUCT = {"kernels": ["a.x * b.x * c.x"], "degree": 3, "fields": SMALL}
STRATA = {"strata": {"gini": "abs(a.x - b.x)"}, "edges": "all"}
COMMITTEE = {"noise": "in_mpc"}
SUMS = {"kernels": ["a.x * b.x", "abs(a.y - b.y)"], "fields": SMALL}
HINGE = {"loss": "auc_hinge", "edges": "7"}
MATCHING = {"edges": "1p", "noise": "skellam", "delta": "1e-6"}
BINOMIAL = {"noise": "binomial", "delta": "1e-6", "epsilon": "8"}
BY_TRIPLES = {"backend": "triples", **NO_DEALER}


def study_of(inputs: Values) -> Study:
    """The study that these facts describe."""
    facts = {key: value for key, value in inputs.items() if key not in ("records", "prepared")}
    nodes = len(inputs["records"].split())
    if "loss" in facts:
        del facts["protocol"]
        parties = make_study("a.x", nodes, degree=1).nodes
        return vector_study(facts.pop("loss"), nodes=parties, max_colluding=nodes - 1, **facts)
    fields = [
        number_field(name, *bounds.split()) for name, bounds in facts.pop("fields", {}).items()
    ]
    facts = {"max_colluding": nodes - 1, "epsilon": "1", **facts}
    if "bins" in facts:
        facts["bins"] = tuple(FieldBins(name, count) for name, count in facts["bins"].items())
    if "strata" in facts:
        parties = make_study("a.x", nodes, degree=1).nodes
        return several(facts.pop("strata"), nodes=parties, **facts)
    if "statistic" in facts:
        name, columns = facts.pop("statistic"), facts.pop("columns").split()
        return library_study(name, (*fields, CLASSES), nodes, columns, **facts)
    used = tuple(each for each in fields if f".{each.name}" in " ".join(facts["kernels"]))
    return make_study(facts.pop("kernels"), nodes, **{"fields": used, **facts})


def tables_of(study: Study, records: str, entropy: Entropy) -> list[Columns]:
    """A table of values inside the fields' bounds for each node."""

    def value(low: int, high: int) -> int:
        return low + int.from_bytes(entropy(8), "little") % (high - low + 1)

    return [
        {
            field.name: np.array(
                [value(field.lower_units, field.upper_units) for _ in range(count)], dtype=np.int64
            )
            for field in study.schema
        }
        for count in map(int, records.split())
    ]


def run(inputs: Values) -> Values:
    """Simulate a study: its rounds and bytes, which are those predicted, and its messages."""
    study, name = study_of(inputs), str(sorted(inputs.items()))
    tables = tables_of(study, inputs["records"], Entropy(f"{name} tables"))
    found = simulate(study, tables, Entropy(name), prepared=inputs.get("prepared", False))
    report = found.report
    for key in ("rounds", "bytes_online", "bytes_offline", "bytes_online_by_node"):
        assert getattr(report, key) == getattr(report, f"{key}_predicted"), key
    assert report.bytes_online_by_step == report.bytes_online_by_step_predicted
    return {
        "rounds": report.rounds,
        "bytes_online": report.bytes_online,
        "bytes_offline": report.bytes_offline,
        "messages": [_text(line, len(list(same))) for line, same in groupby(lines_of(found))],
        "content": _content(found),
    }


def lines_of(found: Simulated) -> Iterator[Line]:
    """All messages in the order in which they are sent, with their rounds."""
    sent = found.transcript
    for phase, frames in (("offline", sent.offline), ("online", sent.online + sent.told)):
        rounds: dict[tuple[str, int], int] = {}
        for sender, receiver, frame in frames:
            number = rounds.setdefault(frame.round_of_study, len(rounds) + 1)
            yield phase, number, sender, receiver, _message(frame), f"{frame.wire_bytes} B"
    study = found.attempt.study
    for node, share in zip(study.nodes, sent.shares, strict=True):
        yield "release", 1, node.name, study.coordinator, "share", f"{len(share)} B"


def _message(frame: Frame) -> str:
    """A frame's step, and how many values of how many bits it has."""
    number = f" {frame.round}" if frame.round else ""
    return f"{frame.step}{number} {frame.count}x{frame.width} bit"


def _text(line: Line, times: int) -> str:
    phase, number, sender, receiver, message, size = line
    repeated = f" x {times}" if times > 1 else ""
    return f"{phase} {number} {sender} -> {receiver} {message} {size}{repeated}"


def _content(found: Simulated) -> str:
    """The beginning of the SHA-256 of all that was sent, and of the estimate."""
    state = hashlib.sha256()
    for _, _, frame in (
        *found.transcript.offline,
        *found.transcript.online,
        *found.transcript.told,
    ):
        state.update(frame.payload)
    for share in found.transcript.shares:
        state.update(share)
    state.update(repr(found.report.estimate).encode())
    return state.hexdigest()[:16]


def _part(about: str, common: Values, studies: Mapping[str, tuple[str, *tuple[Any, ...]]]):
    good = {}
    for name, (records, *facts) in studies.items():
        good[name] = {"records": records}
        for each in (common, *facts):
            good[name] |= each
    return Part(about, run, good)


ABOUT = (
    "The messages of whole studies in the order in which they are sent: phase, round, sender, "
    "receiver, step, count x width of its values, bytes as a frame, and how often in a row. "
)
PARTS = {
    "transcripts_tables": _part(
        ABOUT + "Pairs and triples under masks of a dealer, compared by tables.",
        {"backend": "shared"},
        {
            "two nodes, all pairs": ("3 2", TAU),
            "three nodes, a committee's noise": ("2 1 1", TAU, COMMITTEE),
            "four nodes, dealt coins": ("2 1 1 1", GINI, COMMITTEE, {"coins": "dealt"}),
            "sampled pairs of two classes": ("6 6 6", AUC, {"edges": "7"}),
            "one matching, binomial noise": ("4 3 3", GINI, MATCHING, BINOMIAL),
            "more than a thousand edges, wide fields": ("30 20", TAU, {"fields": WIDE}),
            "triples of records, compared": ("2 1 1", SKEWNESS),
            "triples of records, multiplied": ("3 3 3", PRODUCT, {"edges": "5"}),
            "strata": ("4 3 2", STRATA),
            "single records": ("2 1 1", MEAN, {"fields": WIDE}),
            "two sums, against lying nodes": (
                "3 0 3",
                GAMMA,
                {"adversary": "lying_nodes", "edges": "2n"},
            ),
        },
    ),
    "transcripts_keys": _part(
        ABOUT + "Pairs and triples under masks of a dealer, compared by keys (DCF).",
        {"backend": "shared"},
        {
            "two nodes, all pairs": ("3 2", TAU, {"fields": WIDE}),
            "three nodes, a committee's noise": ("2 1 1", TAU, COMMITTEE, {"fields": WIDE}),
            "four nodes, dealt coins": (
                "2 1 1 1",
                GINI,
                COMMITTEE,
                {"coins": "dealt", "fields": WIDE},
            ),
            "sampled pairs of two classes": ("6 6 6", AUC, {"edges": "7", "fields": WIDE}),
            "one matching, skellam noise": ("4 3 3", GINI, MATCHING, {"fields": WIDE}),
            "uniform pairs": (
                "5 5 5",
                GINI,
                {"sampling": "uniform", "edges": "2n", "fields": WIDE},
            ),
            "triples of records, compared": ("2 1 1", SPEARMAN, {"fields": WIDE}),
            "two sums": ("3 0 3", GAMMA, {"fields": WIDE, "edges": "2n"}),
            "strata": ("4 3 2", STRATA, {"high": 2000}),
            "without noise": (
                "3 3 3",
                TAU,
                {"epsilon": "1e12", "max_colluding": 0, "fields": WIDE},
            ),
        },
    ),
    "transcripts_garbled": _part(
        ABOUT + "Garbled pairs without a dealer.",
        {"backend": "garbled", **NO_DEALER},
        {
            "two nodes, all pairs": ("3 2", TAU),
            "two nodes, a mean difference": ("3 2", GINI),
            "three nodes, a committee's noise": ("2 1 1", TAU, COMMITTEE),
            "four nodes, wide fields": ("2 1 1 1", TAU, {"fields": WIDE}),
            "sampled pairs of two classes": ("6 6 6", AUC, {"edges": "7"}),
            "one matching, skellam noise": ("4 3 3", GINI, MATCHING),
            "three nodes, wide fields": ("2 1 1", GINI, {"fields": WIDE}),
            "strata": ("4 3 2", STRATA),
            "two sums": ("3 0 3", GAMMA, {"edges": "2n"}),
            "single records": ("2 1 1", MEAN, {"fields": WIDE}),
        },
    ),
    "transcripts_triples": _part(
        ABOUT + "Edges by triples that all owners make, without a dealer.",
        {"backend": "triples", **NO_DEALER},
        {
            "two nodes, all pairs": ("3 2", TAU),
            "two nodes, prepared ahead": ("3 2", TAU, {"prepared": True}),
            "three nodes, a committee's noise": ("2 1 1", TAU, COMMITTEE),
            "four nodes, wide fields": ("2 1 1 1", TAU, {"fields": WIDE}),
            "sampled pairs of two classes": ("6 6 6", AUC, {"edges": "7"}),
            "one matching, skellam noise": ("4 3 3", GINI, MATCHING),
            "triples of records, compared": ("2 1 1", SKEWNESS),
            "triples of records, prepared ahead": (
                "3 3 3",
                PRODUCT,
                {"edges": "5", "prepared": True},
            ),
            "strata": ("4 3 2", STRATA),
            "two sums": ("3 0 3", GAMMA, {"edges": "2n"}),
        },
    ),
    "transcripts_grid": _part(
        ABOUT + "The grid with masks of a dealer.",
        {"protocol": "grid", "backend": "grid"},
        {
            "two nodes": ("3 2", TAU),
            "three nodes, a committee's noise": ("2 1 1", TAU, COMMITTEE),
            "four nodes, one without records": ("2 0 3 1", GINI),
            "two classes": ("6 6 6", AUC),
            "skellam noise": ("4 3 3", GINI, {"noise": "skellam", "delta": "1e-6"}),
            "binomial noise": ("2 1 1", GINI, BINOMIAL),
            "bins": ("4 3 3", TAU, {"fields": WIDE, "bins": {"x": 5, "y": 8}}),
            "levels": ("4 3 3", TAU, {"fields": WIDE, "levels": 5}),
            "triples of records": ("2 1 1", SPEARMAN),
            "strata": ("4 3 2", STRATA),
            "two sums": ("3 0 3", GAMMA),
        },
    ),
    "transcripts_grid_without_dealer": _part(
        ABOUT + "The grid without a dealer.",
        {"protocol": "grid", "backend": "grid", **NO_DEALER},
        {
            "two nodes": ("3 2", TAU),
            "three nodes, a committee's noise": ("2 1 1", TAU, COMMITTEE),
            "four nodes, one without records": ("2 0 3 1", GINI),
            "two classes": ("6 6 6", AUC),
            "skellam noise": ("4 3 3", GINI, {"noise": "skellam", "delta": "1e-6"}),
            "two nodes, binomial noise": ("2 1", GINI, BINOMIAL),
            "bins": ("4 3 3", TAU, {"fields": WIDE, "bins": {"x": 5, "y": 8}}),
            "levels": ("4 3", TAU, {"fields": WIDE, "levels": 5}),
            "strata": ("4 3 2", STRATA),
            "two sums": ("3 0 3", GAMMA),
        },
    ),
    "transcripts_vector": _part(
        ABOUT + "A vector of sums under one noise, with a dealer and by triples.",
        {"protocol": "vector", "estimator": "means", "noise": "gaussian", "delta": "1e-6"},
        {
            "two nodes, all pairs": ("3 2", SUMS, {"edges": "all"}),
            "three nodes, sampled pairs": ("4 3 3", SUMS, {"edges": "2n"}),
            "four nodes, laplace noise": ("2 1 1 1", SUMS, {"noise": "laplace", "delta": ""}),
            "one matching, wide fields": ("4 3 3", SUMS, {"edges": "1p", "fields": WIDE}),
            "triples of records": ("3 3 3", PRODUCT, {"edges": "5"}),
            "hinge loss": ("6 6 6", HINGE),
            "contrastive loss, a step of a training": (
                "3 3 3",
                HINGE,
                {"loss": "contrastive", "edges": "8", "course": "fit", "step": 2, "steps": 5},
            ),
            "by triples": ("3 2", SUMS, BY_TRIPLES, {"edges": "all"}),
            "by triples, prepared ahead": (
                "2 1 1",
                SUMS,
                BY_TRIPLES,
                {"edges": "all", "prepared": True},
            ),
            "hinge loss by triples": ("6 6 6", HINGE, BY_TRIPLES),
        },
    ),
}
