"""The identity that a study had under tag 1, when one document held the settings of all protocols.

A study that was released by umpc 0.1 has its share in the nodes' ledgers under this identity. A
node that finds it there refuses the study clearly, because the same study would otherwise be
charged a second time.
"""

from __future__ import annotations

import msgspec

from umpc.crypto.prg import digest
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Participant

FORMER_VERSION = "0.1.0"
FORMER_TAG = b"umpc study 1"


class _FormerStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The former document: its keys in their former order, which its bytes depend on."""

    name: str
    statistic: str
    kernels: tuple[str, ...]
    fields: tuple[FieldText, ...]
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
                fields=study.fields,
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
