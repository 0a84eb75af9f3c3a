"""A training: one study after the other, each at the weights that follow from the ones before.

Every step is a study of its own, with a fresh E, fresh material and fresh noise; its weights are
public. All steps are one course, which every node charges once, with the first step
(`umpc/study/parts.py`). A training that is run again under its name takes the stored gradients of
the steps that it had, at no cost, and goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from umpc.dp.composition import gaussian_curve, renyi_epsilon
from umpc.dp.distributed_gaussian import parameter_per_square, rho_of
from umpc.errors import ConfigError
from umpc.protocols.vector.losses import LOSSES, Coordinate
from umpc.protocols.vector.settings import VectorSettings, loss_of
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.ustat.schema import Schema
from umpc_papers.training.descent import Descent, auc_of, exact_weights, first_weights
from umpc_papers.training.trainfile import TrainFile

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PublicTable:
    """Records that everybody may know, in the clear, on which a model is tried at no cost.

    columns: field → (records,) in the field's unit.
    """

    columns: dict[str, Floats]
    is_first: NDArray[np.bool_]


@dataclass(frozen=True)
class StepResult:
    """One step.

    auc: of the weights after the step, on the public table; None without one.
    gradient, noise: the lengths of the released gradient and of its noise, per scale.
    epsilon: of all steps so far; the nodes have charged that of all steps that are paid.
    """

    step: int
    auc: float | None
    gradient: float
    noise: float
    epsilon: float
    pairs: int
    bytes: int
    bytes_predicted: int
    seconds: float
    replayed: bool


@dataclass(frozen=True)
class Model:
    """A trained model: a record's score is Σ weight·value over its fields.

    weights: field → weight in the field's unit, of values inside the field's bounds.
    """

    training: str
    loss: str
    label: str
    first_class: str
    weights: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    epsilon: float
    delta: float
    max_colluding: int
    steps_paid: int
    steps_done: int
    stopped_early: bool
    auc_on: str
    steps: list[StepResult]

    def write(self, path: Path) -> None:
        """The model as a JSON file. Raises: ConfigError."""
        try:
            path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"{path}: the model cannot be written ({error.strerror}): make room, or check the "
                "folder, its owner and its mode"
            ) from error


Run = Callable[[Study], Awaitable[Report]]
Told = Callable[[StepResult], None]


async def train(
    file: TrainFile, coordinator: str, run: Run, told: Told, public: PublicTable | None = None
) -> Model:
    """Run all steps, or as many as the gradient is seen.

    Args:
        coordinator: the name in its certificate. run: runs a study to its report.
        told: is told every step. public: the table of `StepResult.auc`.

    Raises: as `run`.
    """
    coordinates = file.coordinates()
    entries = file.entries
    start = first_weights(entries.loss, len(coordinates))
    descent = Descent(entries.loss, start, file.rate, entries.patience)
    schema = _schema(file)
    results: list[StepResult] = []
    while descent.steps < entries.steps and not descent.is_over:
        weights = exact_weights(descent.weights, coordinates, schema)
        study = file.study(coordinator, weights, descent.steps + 1)
        report = await run(study)
        gradient, noise = gradient_of(report, study, coordinates)
        descent.take(gradient, noise)
        auc = auc_on(public, study, coordinates, descent.weights) if public else None
        epsilon = float(epsilon_of_steps(study, descent.steps))
        results.append(_result(descent, report, gradient, noise, auc, epsilon))
        told(results[-1])
    return _model(file, descent, results, coordinates, public)


def _schema(file: TrainFile) -> Schema:
    return Schema(each.text().schema() for each in file.entries.fields)


def gradient_of(
    report: Report, study: Study, coordinates: tuple[Coordinate, ...]
) -> tuple[Floats, Floats]:
    """The released means per scale, and the standard deviations of their noise."""
    units = units_of(study, coordinates)
    means = np.array([entry.mean for entry in report.sums])
    noise = np.array([entry.noise_std for entry in report.sums])
    return means / units, noise / units


def units_of(study: Study, coordinates: tuple[Coordinate, ...]) -> Floats:
    """Each coordinate's scale in the field's unit."""
    return np.array(
        [float(each.scale * study.schema[each.name].resolution) for each in coordinates]
    )


def points_of(public: PublicTable, study: Study, coordinates: tuple[Coordinate, ...]) -> Floats:
    """(records, coordinates): values inside the bounds, from the centre, per scale."""
    rows = []
    for each, unit in zip(coordinates, units_of(study, coordinates), strict=True):
        field = study.schema[each.name]
        values = np.clip(public.columns[each.name], float(field.lower), float(field.upper))
        rows.append((values - each.centre * float(field.resolution)) / unit)
    return np.stack(rows, axis=1)


def auc_on(
    public: PublicTable, study: Study, coordinates: tuple[Coordinate, ...], weights: Floats
) -> float:
    """The AUC of weights on a public table; a contrastive model's scores have no direction."""
    found = auc_of(points_of(public, study, coordinates) @ weights, public.is_first)
    loss = study.statistic
    return max(found, 1 - found) if LOSSES[loss].least_gate < 0 else found


def _result(
    descent: Descent,
    report: Report,
    gradient: Floats,
    noise: Floats,
    auc: float | None,
    epsilon: float,
) -> StepResult:
    return StepResult(
        step=descent.steps,
        auc=auc,
        gradient=float(np.linalg.norm(gradient)),
        noise=float(np.linalg.norm(noise)),
        epsilon=epsilon,
        pairs=report.edges,
        bytes=report.bytes_online + report.bytes_offline,
        bytes_predicted=report.bytes_online_predicted + report.bytes_offline_predicted,
        seconds=report.seconds_total,
        replayed=report.replayed,
    )


def _model(
    file: TrainFile,
    descent: Descent,
    results: list[StepResult],
    coordinates: tuple[Coordinate, ...],
    public: PublicTable | None,
) -> Model:
    entries = file.entries
    schema = _schema(file)
    weights = exact_weights(descent.weights, coordinates, schema)
    study = file.study("coordinator", weights, 1)
    fields = [schema[each.name] for each in coordinates]
    return Model(
        training=entries.name,
        loss=entries.loss,
        label=file.label.name,
        first_class=(file.label.categories or [""])[0],
        weights={each.name: float(w) for each, w in zip(fields, weights, strict=True)},
        bounds={each.name: (float(each.lower), float(each.upper)) for each in fields},
        epsilon=float(study.exact_epsilon),
        delta=float(study.exact_delta),
        max_colluding=study.max_colluding,
        steps_paid=entries.steps,
        steps_done=descent.steps,
        stopped_early=descent.is_over and descent.steps < entries.steps,
        auc_on="" if public is None else f"{len(public.is_first)} public records",
        steps=results,
    )


def epsilon_of_steps(study: Study, done: int) -> Fraction:
    """The ε that the first steps of a course have together, of the ε that is paid for all."""
    steps = study.settings_as(VectorSettings).steps
    if study.noise != "gaussian":
        return study.exact_epsilon * done / steps
    sums = len(study.kernels)
    square = 1 if loss_of(study) is not None else sums
    epsilon, delta = study.exact_epsilon, study.exact_delta
    k = parameter_per_square(epsilon, delta, sums, square, study.honest, steps)
    return renyi_epsilon(gaussian_curve(rho_of(k, sums, square, study.honest, done)), delta)
