"""train.toml: a training as people write it, and the study of each of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec

from umpc.coordinator.studyfile import read_values
from umpc.coordinator.studyfile_entries import FieldEntry, datasets_of
from umpc.decoding import convert
from umpc.errors import StudyError
from umpc.protocols.registry import checked
from umpc.protocols.vector.losses import AUC_HINGE, LOSSES, Coordinate
from umpc.protocols.vector.settings import (
    PREPROCESSINGS,
    VectorSettings,
    coordinates_of,
    kernels_of,
)
from umpc.study.document import Study
from umpc.study.parts import Participant, exact
from umpc.study.settings import describe, in_words
from umpc.text_file import TRAINING
from umpc.ustat.estimators import VECTOR

Number = int | str


class CoordinateEntry(FieldEntry, forbid_unknown_fields=True):
    """A field of the model, or its label. centre, scale: public guesses of mean and deviation."""

    centre: Number | None = None
    scale: Number | None = None


class TrainEntries(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The keys of train.toml."""

    name: Annotated[str, describe("A new name is a new training, with a new charge.")]
    fields: Annotated[
        list[CoordinateEntry],
        describe(
            "The fields of the model, each with lower, upper, and resolution or whole = true, and "
            "perhaps centre and scale; and the label, with two categories. public = true marks "
            "the label of auc_hinge, which everybody may know."
        ),
    ]
    epsilon: Annotated[Number, describe("Privacy of all steps together.")]
    delta: Annotated[Number, describe("δ of all steps together, such as 1e-6.")]
    steps: Annotated[int, describe("The most steps. ε and δ are paid for all of them.")]
    nodes: Annotated[list[Participant], describe("Name and address of each site's node.")]
    identity: Annotated[str, describe("The coordinator's folder of certificates.")]
    dealer: Annotated[Participant | None, describe("Name and address of the dealer.")] = None
    loss: Annotated[str, describe("auc_hinge or contrastive.")] = AUC_HINGE
    rate: Annotated[Number, describe("The length of the first step, in gradients.")] = "0.3"
    margin: Annotated[Number, describe("The margin of the loss.")] = 1
    clip: Annotated[Number, describe("The length to which records are shortened.")] = 3
    patience: Annotated[
        int, describe("Stop after so many gradients in a row that noise hides; 0 never stops.")
    ] = 3
    edges: Annotated[str, describe("Pairs of each step, such as 2n.")] = "2n"
    backend: Annotated[str, describe("shared, or triples without a dealer.")] = "shared"
    max_colluding: Annotated[int | None, describe("The default is all nodes but one.")] = None
    dataset: Annotated[
        str | dict[str, str] | None, describe("As in study.toml, for sites with several.")
    ] = None
    seconds_per_step: Annotated[int, describe("Seconds until a step is given up.")] = 600


@dataclass(frozen=True)
class TrainFile:
    """The content of train.toml."""

    path: Path
    entries: TrainEntries

    @property
    def identity(self) -> Path:
        """The coordinator's folder."""
        return (self.path.parent / self.entries.identity).resolve()

    @property
    def rate(self) -> float:
        """The length of the first step. Raises: StudyError."""
        rate = exact(str(self.entries.rate), "rate")
        if rate <= 0:
            raise StudyError(f"{self.path}: rate must be above 0, got {rate}")
        return float(rate)

    @property
    def _model(self) -> list[CoordinateEntry]:
        return [each for each in self.entries.fields if each.categories is None]

    @property
    def label(self) -> CoordinateEntry:
        """The label's field. Raises: StudyError where not exactly one field has categories."""
        found = [each for each in self.entries.fields if each.categories is not None]
        if len(found) != 1:
            raise StudyError(
                f"{self.path}: one field with categories, the label, was expected, and "
                f"{len(found)} came. Correct `fields`"
            )
        return found[0]

    def coordinates(self) -> tuple[Coordinate, ...]:
        """The model's fields with centres and scales. Raises: StudyError."""
        return coordinates_of(self.study("coordinator", [Fraction(0)] * len(self._model), 1))

    def study(self, coordinator: str, weights: Sequence[Fraction], step: int) -> Study:
        """The study of one step at these weights, checked. Raises: StudyError and its kinds."""
        entries = self.entries
        label = self.label
        if entries.loss not in LOSSES:
            raise StudyError(f"{self.path}: loss must be one of {', '.join(LOSSES)}")
        nodes = tuple(entries.nodes)
        colluding = entries.max_colluding
        study = Study(
            name=f"{entries.name}-{step}",
            statistic=entries.loss,
            kernels=(),
            fields=(*(each.text() for each in self._model), label.text()),
            epsilon=str(entries.epsilon),
            max_colluding=max(len(nodes) - 1, 0) if colluding is None else colluding,
            coordinator=coordinator,
            nodes=nodes,
            settings=self._settings(weights, step),
            estimator=VECTOR,
            sampling=LOSSES[entries.loss].sampling,
            seconds_per_step=entries.seconds_per_step,
        )
        if datasets := datasets_of(nodes, entries.dataset):
            study = study.replaced(datasets=datasets)
        return checked(study.replaced(kernels=kernels_of(study)))

    def _settings(self, weights: Sequence[Fraction], step: int) -> VectorSettings:
        entries = self.entries
        return VectorSettings(
            edges=entries.edges,
            delta=str(entries.delta),
            backend=entries.backend,
            preprocessing=PREPROCESSINGS.get(entries.backend, "dealer"),
            dealer=entries.dealer,
            loss=entries.loss,
            coordinates=tuple(each.name for each in self._model),
            weights=tuple(map(str, weights)),
            margin=str(entries.margin),
            centres=self._public_numbers("centre"),
            scales=self._public_numbers("scale"),
            clip=str(entries.clip),
            course=entries.name,
            step=step,
            steps=entries.steps,
        )

    def _public_numbers(self, key: str) -> tuple[str, ...]:
        """A number of every field of the model, or none at all. Raises: StudyError."""
        found = [getattr(each, key) for each in self._model]
        if all(value is None for value in found):
            return ()
        if any(value is None for value in found):
            raise StudyError(f"{self.path}: give a {key} for every field of the model, or for none")
        return tuple(map(str, found))


def load_train_file(path: Path) -> TrainFile:
    """Read train.toml. Raises: StudyError naming file and key."""
    values = read_values(path, TRAINING)
    try:
        entries = convert(values, TrainEntries)
    except msgspec.ValidationError as error:
        raise StudyError(f"{path}: {in_words(error)}. Correct the key there") from error
    file = TrainFile(path, entries)
    _ = file.rate, file.label
    return file
