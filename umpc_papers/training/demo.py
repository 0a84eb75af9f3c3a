"""The demo of `umpc train`: a table split over processes on this machine, and a part kept public.

Every fourth row is given to no node. It stands for public records: the demo takes the bounds,
centres and scales of the fields from it, and computes every AUC on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from umpc.cli.demo import kept_folder
from umpc.cli.demo_options import named_value
from umpc.cli.kernel_options import listed
from umpc.cli.table import DemoTable, read_csv
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import MISSING, Deployment, ended_with_us, rules_for
from umpc.errors import ConfigError
from umpc.protocols.vector.losses import AUC_HINGE
from umpc.study.parts import FieldText
from umpc_papers.training.command_run import lead, public_table
from umpc_papers.training.descent import auc_of, fit_without_privacy
from umpc_papers.training.trainfile import TrainFile, load_train_file
from umpc_papers.training.training import PublicTable, points_of

if TYPE_CHECKING:
    from umpc_papers.training.training import Model, StepResult

NOWHERE = "127.0.0.1:1"
"""The address of a process that is not started yet."""
HELD_OUT = 4
"""Every row of so many is public."""
OUTER = (1, 99)
"""Bounds hold the values between these percentiles of the public rows; others are clipped."""
CARRIED = ("loss", "epsilon", "delta", "steps", "rate", "margin", "clip", "patience", "edges")
"""Options that the training's file takes as they are."""


def run_demo(
    given: Mapping[str, Any], told: Callable[[StepResult], None]
) -> tuple[Model, float | None]:
    """Train over real processes.

    Returns: the model, and the AUC of the pooled fit without privacy, where there is one.
    Raises: ConfigError, StudyError, DataError.
    """
    table, label = _table(given)
    public_rows = table.rows[::HELD_OUT]
    private_rows = [row for place, row in enumerate(table.rows) if place % HELD_OUT]
    held_out = DemoTable(table.columns, public_rows, label)
    private = DemoTable(table.columns, private_rows, label)
    public = public_table(held_out, *label)
    with kept_folder(given["keep"]) as folder, fork_server() as popen:
        deployment = Deployment(folder, popen=popen)
        paths = private.split(folder, given["nodes"])
        with ended_with_us(deployment.processes):
            nodes = [{"name": path.stem, "address": NOWHERE} for path in paths]
            dealer = {"name": "dealer", "address": NOWHERE}
            fields = _fields(held_out, public, given["loss"])
            file = _write(folder, given, fields, nodes, dealer)
            _start(deployment, file, paths)
            served = deployment.wait_until_ready()
            for each in (*nodes, dealer):
                each["address"] = served[each["name"]].address
            file = _write(folder, given, fields, nodes, dealer)
            model = lead(file, told, public)
    return model, _reference(file, public, public_table(private, *label))


def _table(given: Mapping[str, Any]) -> tuple[DemoTable, tuple[str, str]]:
    for option, value in (("--csv", "csv_file"), ("--fields", "fields"), ("--label", "label")):
        if given[value] is None:
            raise ConfigError(f"without a FILE, umpc train is a demo and takes {option}")
    label = named_value("--label", given["label"])
    names = listed(given["fields"])
    return read_csv(given["csv_file"], given["delimiter"], [*names, label[0]]), label


def _fields(table: DemoTable, public: PublicTable, loss: str) -> list[dict[str, Any]]:
    """The fields as train.toml has them, all from the public rows.

    The centre is the median and the scale the standard deviation, both rounded to steps.
    """
    found = []
    for field in table.fields():
        entry = field_entry(field)
        if field.categories:
            # a table's second class should score higher, and a training's first one
            entry["categories"] = entry["categories"][::-1]
            entry.pop("public", None)
            found.append(entry | ({"public": True} if loss == AUC_HINGE else {}))
        else:
            found.append(entry | _numbers(field, public.columns[field.name]))
    return found


def _numbers(field: FieldText, values: np.ndarray) -> dict[str, str]:
    step = Fraction(field.step)
    low, high = (float(end) for end in np.percentile(values, OUTER))
    if low == high:
        low, high = float(values.min()), float(values.max())
    numbers = {
        "lower": low,
        "upper": max(high, low + float(step)),
        "centre": float(np.median(np.clip(values, low, high))),
        "scale": max(float(np.std(values)), float(step)),
    }
    return {key: str(round(value / step) * step) for key, value in numbers.items()}


def _write(
    folder: Path,
    given: Mapping[str, Any],
    fields: list[dict[str, Any]],
    nodes: list[dict[str, str]],
    dealer: dict[str, str],
) -> TrainFile:
    """train.toml, and what it says."""
    entries = {
        "name": "demo",
        "identity": "coordinator",
        **{key: given[key] for key in CARRIED},
        "max_colluding": given["max_colluding"],
        "dealer": dealer,
        "fields": fields,
        "nodes": nodes,
    }
    written = write_study_file(folder, entries)
    file = load_train_file(written.rename(folder / "train.toml"))
    _ = file.coordinates()  # refused before any process starts
    return file


def _start(deployment: Deployment, file: TrainFile, paths: Sequence[Path]) -> None:
    """Start all processes but the coordinator, with a budget of just this training."""
    weights = [Fraction(0)] * len(file.coordinates())
    study = file.study("coordinator", weights, 1)
    click.echo(f"starting a dealer and {len(paths)} nodes", err=True)
    deployment.start_dealer()
    epsilon, delta = str(study.exact_epsilon), str(study.exact_delta)
    for path in paths:
        deployment.start_node(path.stem, path, epsilon, MISSING, more=rules_for(study), delta=delta)


def _reference(file: TrainFile, public: PublicTable, private: PublicTable) -> float | None:
    """The AUC on the public rows of the fit on all other rows together, without privacy."""
    if file.entries.loss != AUC_HINGE:
        return None
    coordinates = file.coordinates()
    study = file.study("coordinator", [Fraction(0)] * len(coordinates), 1)
    weights = fit_without_privacy(points_of(private, study, coordinates), private.is_first)
    return auc_of(points_of(public, study, coordinates) @ weights, public.is_first)
