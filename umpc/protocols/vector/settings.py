"""The settings of a study of protocol = "vector", and their rules."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import msgspec

from umpc.crypto.prg import digest
from umpc.errors import StudyError
from umpc.protocols.u_mpc.settings import check_noise
from umpc.protocols.vector.losses import LOSSES, Coordinate, Loss, coordinate_of, gradient_kernels
from umpc.study.document import Study
from umpc.study.parts import Course, Participant, exact
from umpc.study.rules import NAME, check_choice
from umpc.study.settings import ProtocolSettings, describe, without_addresses
from umpc.ustat.estimators import VECTOR

NOISES = ("gaussian", "laplace")
BACKENDS = ("shared", "triples")
PREPROCESSINGS = {"shared": "dealer", "triples": "none"}
"""Backend → who makes its correlated randomness."""
MOST_STEPS = 10_000
COURSE_TAG = b"umpc course 1"


class VectorSettings(ProtocolSettings, frozen=True, kw_only=True, tag="vector"):
    """A vector of noisy sums over one E is released, under one joint sensitivity.

    Without a loss the kernels are any, and each sum moves by at most its kernel's range. With a
    loss they are those of `losses.py`, and every record is clipped before it is used.
    """

    edges: Annotated[
        str, describe("Sets to average over: a number, a multiple of n such as 2n, or all.")
    ] = "2n"
    noise: Annotated[
        str,
        describe(
            "The noise that each node adds: gaussian for a joint L2 sensitivity, with a delta; or "
            "laplace for a joint L1 sensitivity, without one.",
            *NOISES,
        ),
    ] = "gaussian"
    delta: Annotated[str, describe("δ of gaussian noise, such as 1e-6.")] = ""
    backend: Annotated[
        str,
        describe("How edges of several owners are evaluated, as for u-mpc.", *BACKENDS),
    ] = "shared"
    preprocessing: Annotated[
        str,
        describe(
            "Who makes correlated randomness: dealer, or none with triples.", "dealer", "none"
        ),
    ] = "dealer"
    dealer: Annotated[Participant | None, describe("Name and address of the dealer.")] = None
    loss: Annotated[
        str,
        describe(
            "A pairwise loss whose gradient the kernels are: auc_hinge or contrastive. `umpc "
            "train` writes it, with all settings below.",
        ),
    ] = ""
    coordinates: Annotated[
        tuple[str, ...], describe("The fields of the model, one for each kernel.")
    ] = ()
    weights: Annotated[
        tuple[str, ...], describe("The model's weights at this step, which are public.")
    ] = ()
    margin: Annotated[str, describe("The margin of the loss, above 0.")] = "1"
    centres: Annotated[
        tuple[str, ...],
        describe("A public centre for each coordinate. The default is the middle of its bounds."),
    ] = ()
    scales: Annotated[
        tuple[str, ...],
        describe("A public scale for each coordinate. The default is half of its bounds."),
    ] = ()
    clip: Annotated[
        str,
        describe("The length to which a node shortens its records, in scales from the centres."),
    ] = "1"
    course: Annotated[
        str, describe("The name of the training that this study is a step of; empty for none.")
    ] = ""
    step: Annotated[int, describe("The number of this step, from 1.")] = 1
    steps: Annotated[
        int, describe("The number of steps that epsilon and delta are for, all together.")
    ] = 1
    matrix: Annotated[
        bool | msgspec.UnsetType,
        describe("The statistic of every pair of the columns, as one matrix: 2 to 20 columns."),
    ] = msgspec.UNSET
    """Studies without it have the identity, and the course, that they had before."""

    @property
    def is_joint(self) -> bool:
        return True

    def computed(self, kernels: tuple[str, ...]) -> tuple[str, ...]:
        """The loss with everything but the weights, which differ from step to step."""
        if not self.loss:
            return kernels
        facts = (self.coordinates, self.margin, self.centres, self.scales, self.clip)
        return (self.loss, *map(repr, facts))


def loss_of(study: Study) -> Loss | None:
    """The loss of a study, if its kernels are the gradient of one."""
    return LOSSES.get(study.settings_as(VectorSettings).loss)


def clip_of(study: Study) -> Fraction:
    """C, the length to which records are clipped. Raises: StudyError."""
    most = exact(study.settings_as(VectorSettings).clip, "clip")
    if most <= 0:
        raise StudyError(f"clip must be above 0, got {most}; a usual value is 1")
    return most


@lru_cache(maxsize=16)
def coordinates_of(study: Study) -> tuple[Coordinate, ...]:
    """The coordinates with centres and scales. Raises: StudyError."""
    settings = study.settings_as(VectorSettings)
    count = len(settings.coordinates)
    for what, given in (("centres", settings.centres), ("scales", settings.scales)):
        if given and len(given) != count:
            raise StudyError(f"{what} takes one number for each of {count} coordinates")
    centres = _numbers("centres", settings.centres, count)
    scales = _numbers("scales", settings.scales, count)
    return tuple(
        coordinate_of(study.schema[name], centre, scale)
        for name, centre, scale in zip(settings.coordinates, centres, scales, strict=True)
    )


def _numbers(key: str, texts: tuple[str, ...], count: int) -> list[Fraction | None]:
    """A number for each coordinate, or None for each where the study gives none."""
    return [exact(text, key) for text in texts] if texts else [None] * count


def course_of(study: Study) -> Course | None:
    """The place of a study in its course; None for a study that is all by itself.

    The id covers everything but the study's own name, its step, its weights and the kernels of a
    loss, which follow from the weights. So all steps of a course have one E's size, one noise and
    one clipping. Where no loss ties the kernels to the weights, they are covered, too: what is
    allowed of one step must not be said of others.
    """
    settings = study.settings_as(VectorSettings)
    if not settings.course:
        return None
    common = msgspec.structs.replace(without_addresses(settings), step=1, weights=())
    first = msgspec.structs.replace(
        study.question,
        name=settings.course,
        kernels=() if settings.loss else study.kernels,
        settings=common,
    )
    return Course(digest(COURSE_TAG, first.encode()), settings.step, settings.steps)


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(VectorSettings)
    check_choice("backend", settings.backend, BACKENDS)
    if study.estimator != VECTOR:
        raise StudyError(
            f'protocol = "vector" releases means as they are, so it takes estimator = "{VECTOR}", '
            f"got {study.estimator!r}"
        )
    check_noise(study, NOISES, "gaussian")
    _check_helpers(settings)
    _check_course(settings)
    _check_loss(study, settings)
    if settings.matrix is True and (settings.loss or not study.several):
        raise StudyError(
            "matrix = true goes with a statistic of two columns, such as kendall_tau, and with "
            "2 to 20 columns; leave it out of other studies"
        )


def _check_helpers(settings: VectorSettings) -> None:
    due = PREPROCESSINGS[settings.backend]
    if settings.preprocessing != due:
        raise StudyError(
            f'backend = "{settings.backend}" goes with preprocessing = "{due}", got '
            f"{settings.preprocessing!r}"
        )
    if (settings.dealer is not None) != (due == "dealer"):
        verb = "takes a dealer; name one" if due == "dealer" else "has no dealer; leave it out"
        raise StudyError(f'preprocessing = "{due}" {verb}')


def _check_course(settings: VectorSettings) -> None:
    if not 1 <= settings.step <= settings.steps <= MOST_STEPS:
        raise StudyError(
            f"step and steps are whole numbers with 1 <= step <= steps <= {MOST_STEPS}, got "
            f"{settings.step} and {settings.steps}"
        )
    if settings.course and not NAME.fullmatch(settings.course):
        raise StudyError(
            f"a course's name has lower-case letters, digits and inner dashes, got "
            f"{settings.course!r}"
        )
    if settings.steps > 1 and not settings.course:
        raise StudyError("several steps share one epsilon, so they take the name of their course")


def _check_loss(study: Study, settings: VectorSettings) -> None:
    """Whether the kernels are exactly the gradient that the settings name."""
    if not settings.loss:
        given = [
            key for key in ("coordinates", "weights", "centres", "scales") if getattr(settings, key)
        ]
        if given:
            raise StudyError(f"{', '.join(given)} goes with a loss, and the study names none")
        return
    check_choice("loss", settings.loss, tuple(LOSSES))
    loss = LOSSES[settings.loss]
    if (study.degree, study.sampling) != (2, loss.sampling):
        raise StudyError(
            f'loss = "{loss.name}" is over pairs with sampling = "{loss.sampling}", got '
            f"degree {study.degree} and {study.sampling!r}"
        )
    if len(set(settings.coordinates)) != len(settings.coordinates):
        raise StudyError("a coordinate is named twice; name each once")
    if not settings.coordinates or len(settings.weights) != len(settings.coordinates):
        raise StudyError(
            f"a loss takes coordinates and one weight for each, got "
            f"{len(settings.coordinates)} coordinates and {len(settings.weights)} weights"
        )
    if exact(settings.margin, "margin") <= 0:
        raise StudyError(f"margin must be above 0, got {settings.margin}")
    _ = clip_of(study), coordinates_of(study)
    if study.kernels != kernels_of(study):
        raise StudyError(
            "the study's kernels are not the gradient of its loss at its weights; let `umpc train` "
            "write them"
        )


def kernels_of(study: Study) -> tuple[str, ...]:
    """The kernels that the loss has at the weights. Raises: StudyError."""
    settings = study.settings_as(VectorSettings)
    weights = [exact(text, "weights") for text in settings.weights]
    return gradient_kernels(
        settings.loss,
        settings.coordinates,
        weights,
        exact(settings.margin, "margin"),
        label_of(study) if settings.loss == "contrastive" else "",
    )


def label_of(study: Study) -> str:
    """The label that a loss compares: the only field that is no coordinate. Raises: StudyError."""
    settings = study.settings_as(VectorSettings)
    others = [field.name for field in study.fields if field.name not in settings.coordinates]
    if len(others) != 1:
        raise StudyError(
            f"a loss takes one field beside its coordinates, the label; got {len(others)}"
        )
    return others[0]
