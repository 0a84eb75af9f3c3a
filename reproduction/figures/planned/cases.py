"""Three statistics of the bank data, split over four nodes, as a study of each protocol."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from unittest import mock

import numpy as np

from reproduction.figures.given import bank_table
from umpc.cli.table import pooled
from umpc.coordinator.studyfile import StudyFile, load_study_file
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.planning.alternatives import turned
from umpc.planning.prediction import attempt_over, reference_table_of
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.base.protocol import Variant
from umpc.protocols.registry import find_protocol, protocol_of
from umpc.study.document import Study
from umpc_papers.central.terms import CompleteFamily, Family, Terms, sums, total, values

NODES = 4
RECORDS = 4521
NOWHERE = "127.0.0.1:1"
STATISTICS = {
    "kendall_tau": (["age", "balance"], None),
    "auc": (["balance"], ("y", "yes")),
    "mean": (["balance"], None),
}
"""Name → the columns, and a public label with its first class."""


@dataclass(frozen=True)
class Case:
    """One statistic.

    tables: each node's records. records: the text of `umpc plan --records`.
    statistic: over all records; a plan is content with some of them.
    """

    file: StudyFile
    tables: list[Mapping[str, np.ndarray]]
    records: str
    like: ReferenceTable
    statistic: float

    def study(self, protocol: str, changes: Mapping[str, str]) -> Study:
        """A study at ε = 1 with the protocol's usual settings, except these changes."""
        return turned(self.file, find_protocol(protocol), Variant(protocol, changes))

    def predicted(self, study: Study) -> float:
        """The mean squared error that `umpc plan --like` predicts."""
        attempt = attempt_over(study, self.records)
        return protocol_of(study).error(attempt, replace(self.like, study=study)).mse


@lru_cache(maxsize=4)
def case_of(statistic: str) -> Case:
    """The case of a statistic on the bank data.

    Without the bank data the table is made up, with the same size and the same domains.
    """
    columns, label = STATISTICS[statistic]
    own, _ = bank_table([*columns, label[0]] if label else columns)
    table = replace(own, first_class=label)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = table.split(folder, NODES)
        entries = {
            "name": "planned",
            "statistic": statistic,
            "columns": columns,
            "fields": [field_entry(field) for field in table.fields()],
            "epsilon": "1",
            "identity": "coordinator",
            "dealer": {"name": "dealer", "address": NOWHERE},
            "nodes": [{"name": path.stem, "address": NOWHERE} for path in paths],
        }
        file = load_study_file(write_study_file(folder, entries))
        study = file.study("coordinator")
        tables = pooled(study, paths)
        records = ",".join(_counted(study, each) for each in tables)
        whole = table.part(0, 1, folder / "all.csv")
        like = reference_table_of(attempt_over(study, records), whole, ",")
        exact = like.whole_statistic
        assert exact is not None
    return Case(file, tables, records, like, exact)


def _counted(study: Study, table: Mapping[str, np.ndarray]) -> str:
    records = len(next(iter(table.values())))
    if not study.two_sample:
        return str(records)
    first = int((table[study.label] == 0).sum())
    return f"{first}+{records - first}"


@contextmanager
def sums_of_all_pairs_once() -> Iterator[None]:
    """Let the runs of a batch share a curator's sums over all pairs, which never change.

    Means over sampled sets, and all noise, are computed anew in each run.
    """
    places = {"global_sensitivity.total": total, "hajek.sums": sums, "adaptations.values": values}
    with ExitStack() as stack:
        for place, function in places.items():
            stack.enter_context(mock.patch(f"umpc_papers.central.{place}", _once(function)))
        yield


def _once(function: Callable) -> Callable:
    """The function, which computes its value over all pairs of all records only once."""
    known = {}

    def computed(terms: Terms, family: Family):
        if not isinstance(family, CompleteFamily) or family.records != RECORDS:
            return function(terms, family)
        if not known:
            known["all pairs"] = function(terms, family)
        return known["all pairs"]

    return computed
