"""Where a node's processor time goes between a proposal and its acceptance, step by step.

`python -m bench.proposal [STUDIES]`. One node of two with half of the bank data, in this process,
with its files on disk. Each study has a new name and is charged. The figures are medians of
processor milliseconds over all threads, once with records in memory and once without.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, TypeVar

from bench.harness import BUDGET, RULES, bank_table
from bench.kendall import kendall_study
from bench.table import show
from umpc.node.attempts.replay import refuse_former
from umpc.node.audit.study_rows import about
from umpc.node.config import load_node_config
from umpc.node.config_section import IDENTITY_FILES
from umpc.node.datasets import Dataset, open_dataset, open_ledger
from umpc.protocols.registry import decode_study, protocol_of
from umpc.simulation import AUTHORITY
from umpc.study.document import Study

STUDIES = 30
NODE = "node-0"
Result = TypeVar("Result")


class Steps:
    """Processor milliseconds by step, of each study."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = defaultdict(list)

    def take(self, step: str, work: Callable[[], Result]) -> Result:
        """Do the work of a step."""
        start = time.process_time()
        found = work()
        self.taken[step].append(1000 * (time.process_time() - start))
        return found


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES
    table, source = bank_table()
    with tempfile.TemporaryDirectory(prefix="umpc-proposal-") as name:
        path = table.split(Path(name), 2)[0]
        columns = [field.name for field in table.fields()]
        study = kendall_study(2, 2 * len(table.rows), "1", noise="distributed").replaced(
            fields=tuple(table.fields()),
            kernels=("sign(a.{0} - b.{0}) * sign(a.{1} - b.{1})".format(*columns),),
        )
        kept = _medians(Path(name), path, study, studies, "")
        parsed = _medians(Path(name), path, study, studies, "cache_megabytes = 0\n")
    rows = [(step, f"{kept[step]:.2f}", f"{parsed[step]:.2f}") for step in kept]
    rows.append(("all steps", f"{sum(kept.values()):.2f}", f"{sum(parsed.values()):.2f}"))
    show(
        f"{source}, {len(table.rows)} records at 2 nodes: processor ms at one, {studies} studies",
        ("step", "in memory", "cache_megabytes = 0"),
        rows,
    )


def _medians(folder: Path, table: Path, study: Study, studies: int, key: str) -> dict[str, float]:
    """Milliseconds of each step. Args: key: a line for [data]."""
    for name in IDENTITY_FILES:
        (folder / name).touch()
    file = folder / "node.toml"
    file.write_text(
        f'name = "{NODE}"\nidentity = "."\nledger = "ledger-{bool(key)}.sqlite"\n'
        f'[data]\npath = "{table.name}"\n{key}[budget]\nepsilon = {BUDGET}\ndelta = "1/2"\n{RULES}'
    )
    config = load_node_config(file)
    steps = Steps()
    with open_ledger(config) as ledger:
        dataset = open_dataset(config, ledger)
        for number in range(studies + 1):
            _accept(steps, dataset, study.replaced(name=f"study-{number}").encode())
    # the first study reads and compiles what every later one has
    return {step: median(taken[1:]) for step, taken in steps.taken.items()}


def _accept(steps: Steps, dataset: Dataset, document: bytes) -> None:
    """All that a node does from a proposal to its acceptance, and then a charge without a run."""
    ledger, admission = dataset.ledger, dataset.admission
    study = steps.take("decode and check the study", lambda: decode_study(document))
    identity, protocol = study.whole.hash, protocol_of(study)
    row = about("proposal", study, study.coordinator, "")
    steps.take("audit trail", lambda: dataset.audit.append(row))
    known: Any = SimpleNamespace(ledger=ledger, name=NODE)
    steps.take(
        "look into the ledger",
        lambda: (ledger.released(identity), ledger.held(identity), refuse_former(known, study)),
    )
    steps.take("rules and approval", lambda: admission.admit(study))
    events = protocol.known_events(study)
    steps.take(
        "reserve",
        lambda: ledger.reserve(identity, study.exact_epsilon, name=study.name, events=events),
    )
    records = steps.take("records", lambda: admission.load(study))
    cohort = records.cohort
    assert cohort is not None
    steps.take("note the cohort", lambda: ledger.note_cohort(identity, cohort))
    own = AUTHORITY.credentials(NODE)
    steps.take(
        "the node's side",
        lambda: protocol.node(own, study, records.columns, records.count, os.urandom).accept(),
    )
    ledger.reserve_delta(identity, Fraction(0))
    ledger.charge(identity, ledger.hold(identity, bytes(32), b"share").attempt)


if __name__ == "__main__":
    main()
