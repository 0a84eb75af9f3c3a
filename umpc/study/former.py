"""The identities that a study had under former tags.

| tag | released by | the document |
|---|---|---|
| 1 | umpc 0.1 | the settings of all protocols side by side |
| 2 | an earlier state of umpc 0.2 | a field without a resolution counted as whole numbers |

A study that was released then has its share in the nodes' ledgers under its former identity. A node
that finds it there refuses the study clearly, because the same study would otherwise be charged a
second time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from umpc.crypto.prg import digest
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Participant
from umpc.study.settings import Settings, without_addresses

FORMER_VERSION = "0.1.0"
FORMER_TAG = b"umpc study 1"
SECOND_VERSION = "0.2.0"
SECOND_TAG = b"umpc study 2"


class _FormerField(msgspec.Struct, frozen=True):
    """A field as tags 1 and 2 had it, whose resolution was 1 by default."""

    name: str
    lower: str
    upper: str
    resolution: str
    categories: tuple[str, ...]
    public: bool


class _FormerStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The document of tag 1: its keys in their former order, which its bytes depend on."""

    name: str
    statistic: str
    kernels: tuple[str, ...]
    fields: tuple[_FormerField, ...]
    epsilon: str
    edges: str
    max_colluding: int
    coordinator: str
    dealer: Participant | None
    nodes: tuple[Participant, ...]
    degree: int
    estimator: str
    split: tuple[str, ...]
    sampling: str
    protocol: str
    noise: str
    delta: str
    backend: str
    preprocessing: str
    bins: tuple[FieldBins, ...]
    rounding: str
    levels: int
    shufflers: tuple[Participant, ...]
    seconds_per_step: int
    version: str


class _SecondStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The document of tag 2: its keys in their order then."""

    name: str
    statistic: str
    kernels: tuple[str, ...]
    fields: tuple[_FormerField, ...]
    epsilon: str
    max_colluding: int
    coordinator: str
    nodes: tuple[Participant, ...]
    settings: dict[str, Any]
    degree: int
    estimator: str
    split: tuple[str, ...]
    sampling: str
    adversary: str
    seconds_per_step: int
    version: str


def former_hashes(study: Study) -> tuple[tuple[str, bytes], ...]:
    """The identities of the same study under all former tags, each with who released it so."""
    return (
        ("umpc 0.1", former_hash(study)),
        ("an earlier state of umpc 0.2", second_hash(study)),
    )


def second_hash(study: Study) -> bytes:
    """The 32 bytes that identified the same study under tag 2."""
    facts = {key: getattr(study, key) for key in _SecondStudy.__struct_fields__}
    facts |= {
        "fields": tuple(map(_former_field, study.fields)),
        "nodes": tuple(map(_without_address, study.nodes)),
        "settings": _second_settings(study.settings),
        "version": SECOND_VERSION,
    }
    return digest(SECOND_TAG, msgspec.json.encode(_SecondStudy(**facts)))


def _second_settings(settings: Settings) -> dict[str, Any]:
    """The settings in their order, without those that came later and are not used."""
    found: dict[str, Any] = msgspec.to_builtins(without_addresses(settings))
    usual = type(settings)()
    unused = [key for key in settings.newer if getattr(settings, key) == getattr(usual, key)]
    return {key: value for key, value in found.items() if key not in unused}


def former_hash(study: Study) -> bytes:
    """The 32 bytes that identified the same study under tag 1."""
    settings = study.settings
    return digest(
        FORMER_TAG,
        msgspec.json.encode(
            _FormerStudy(
                name=study.name,
                statistic=study.statistic,
                kernels=study.kernels,
                fields=tuple(map(_former_field, study.fields)),
                epsilon=study.epsilon,
                edges=study.edges,
                max_colluding=study.max_colluding,
                coordinator=study.coordinator,
                dealer=_without_address(study.dealer) if study.dealer else None,
                nodes=tuple(map(_without_address, study.nodes)),
                degree=study.degree,
                estimator=study.estimator,
                split=study.split,
                sampling=study.sampling,
                protocol=study.protocol,
                noise=study.noise,
                delta=study.delta,
                backend=study.backend,
                preprocessing=study.preprocessing,
                bins=getattr(settings, "bins", ()),
                rounding=getattr(settings, "rounding", "simple"),
                levels=getattr(settings, "levels", 0),
                shufflers=tuple(map(_without_address, study.shufflers)),
                seconds_per_step=study.seconds_per_step,
                version=FORMER_VERSION,
            )
        ),
    )


def _without_address(participant: Participant) -> Participant:
    """The participant without its address, as the identity has it."""
    return Participant(participant.name, "")


def _former_field(field: FieldText) -> _FormerField:
    """The field as it was written then."""
    return _FormerField(
        field.name, field.lower, field.upper, field.step, field.categories, field.public
    )
