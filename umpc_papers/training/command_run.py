"""A training's run as its coordinator, and the public table on which its models are tried."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from umpc.api.study import run_now
from umpc.cli.table import DemoTable
from umpc.coordinator.client import run_study
from umpc.errors import ConfigError
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.transport.identity import load_identity
from umpc_papers.training.trainfile import TrainFile
from umpc_papers.training.training import Model, PublicTable, StepResult, train


def lead(file: TrainFile, told: Callable[[StepResult], None], public: PublicTable | None) -> Model:
    """Run a training as its coordinator."""
    identity = load_identity(file.identity, "coordinator")

    async def run(study: Study) -> Report:
        return await run_study(study, identity)

    return run_now(train(file, identity.name, run, told, public))


def public_table(table: DemoTable, label: str, first: str) -> PublicTable:
    """A table's rows as numbers, with the label apart. Raises: ConfigError."""
    columns = dict(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    is_first = np.array([value.strip() == first for value in columns.pop(label)])
    if is_first.all() or not is_first.any():
        raise ConfigError(
            f"the public table has records of one class of {label!r} only, and an AUC compares "
            f"two; give it records of both"
        )
    numbers = {name: np.array([float(value) for value in row]) for name, row in columns.items()}
    return PublicTable(numbers, is_first)
