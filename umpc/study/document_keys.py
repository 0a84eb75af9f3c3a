"""The keys of a study's document, and each of them as code reads it.

`document.py` has what follows from them. A key that came later is UNSET where a study does not have
it, so that the study's identity is as before; its property gives the plain value.
"""

from __future__ import annotations

from typing import Any, Self, TypeVar

import msgspec

from umpc.errors import (
    LocalProtocolError,
    StudyError,
)
from umpc.protocol_version import PROTOCOL
from umpc.study.grades import HONEST
from umpc.study.parts import FieldText, Missing, Participant, Person
from umpc.study.settings import Settings, keys_of, named
from umpc.study.several import StudyPart

Kind = TypeVar("Kind", bound=Settings)


class StudyKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """One computation: the statistic, the participants, the privacy, and the protocol.

    name: a new name is a new study, with new noise and a new charge.
    kernels: the text of one kernel for each released sum, over `degree` records.
    fields: the columns that the study reads, with their bounds.
    epsilon: exact text, against replacing one record.
    max_colluding: how many nodes may pool what they know without weakening ε.
    settings: the protocol, and everything that only this protocol needs.
    estimator: what is computed from the released means.
    split: each sum's part of epsilon, as exact text; equal parts if empty. With `parts` it has one
        part for each statistic.
    sampling: "balanced" over all records; "uniform" or "bernoulli", which draw edges without
        regard to how many a record is in; or "two_sample", where the first record of an edge has
        the first of a public label's two values, and the second record has the second value.
    adversary: the grade of the promise, one of `grades.ADVERSARIES`.
    version: of the protocol, and not of the package.
    where: a condition on a record; each node leaves out the records for which it does not hold.
        Without a condition the key is not in the document, whose identity is then as before.
    person: the column that tells people apart, where all records of one person are protected
        together. Without it the key is not in the document.
    parts: the values of a study that reports several; its estimator is then "means".
    strata: the field whose categories are the strata of the parts. Without them the keys are not
        in the document.
    may_miss: how many nodes may be lost before the release, so that the study ends with the others.
        Without it the key is not in the document. required: the nodes that may not.
    missing: the nodes that this attempt leaves out; `nodes` are then the survivors, and everything
        that follows from the nodes follows from them (`survivors.py`).
    datasets: for each node the name of its data set, in the order of `nodes`; empty where the node
        has one only. Without any name the key is not in the document.
    """

    name: str
    statistic: str
    kernels: tuple[str, ...]
    fields: tuple[FieldText, ...]
    epsilon: str
    max_colluding: int
    coordinator: str
    nodes: tuple[Participant, ...]
    settings: Settings
    degree: int = 2
    estimator: str = "mean"
    split: tuple[str, ...] = ()
    sampling: str = "balanced"
    adversary: str = HONEST
    seconds_per_step: int = 600
    version: str = PROTOCOL
    where: str | msgspec.UnsetType = msgspec.UNSET
    person: Person | msgspec.UnsetType = msgspec.UNSET
    parts: tuple[StudyPart, ...] | msgspec.UnsetType = msgspec.UNSET
    strata: str | msgspec.UnsetType = msgspec.UNSET
    may_miss: int | msgspec.UnsetType = msgspec.UNSET
    required: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    missing: Missing | msgspec.UnsetType = msgspec.UNSET
    datasets: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return msgspec.json.encode(self)

    @property
    def names_missing(self) -> tuple[str, ...]:
        """The names of the nodes that this attempt leaves out, in the study's order."""
        missing = self.missing
        return (
            () if isinstance(missing, msgspec.UnsetType) else tuple(n.name for n in missing.nodes)
        )

    @property
    def most_missing(self) -> int:
        """How many nodes may be lost before the release, in all."""
        return 0 if isinstance(self.may_miss, msgspec.UnsetType) else self.may_miss

    @property
    def names_required(self) -> tuple[str, ...]:
        """The names of the nodes without which there is no result."""
        return () if isinstance(self.required, msgspec.UnsetType) else self.required

    @property
    def people(self) -> Person | None:
        """The column that tells people apart; None where each record is protected by itself."""
        return None if isinstance(self.person, msgspec.UnsetType) else self.person

    @property
    def several(self) -> tuple[StudyPart, ...]:
        """The study's parts; none where it reports one value."""
        return () if isinstance(self.parts, msgspec.UnsetType) else self.parts

    @property
    def stratum_field(self) -> str:
        """The field whose categories are strata; empty where there are none."""
        return "" if isinstance(self.strata, msgspec.UnsetType) else self.strata

    def index_of(self, node: str) -> int:
        """The place of a node in the study. Raises: StudyError."""
        for index, participant in enumerate(self.nodes):
            if participant.name == node:
                return index
        names = ", ".join(participant.name for participant in self.nodes)
        raise StudyError(f"node {node!r} is not one of the study's nodes: {names}")

    def dataset_of(self, node: str) -> str:
        """The name of a node's data set, empty where the study names none. Raises: StudyError."""
        place = self.index_of(node)
        return "" if isinstance(self.datasets, msgspec.UnsetType) else self.datasets[place]

    @property
    def named_datasets(self) -> dict[str, str]:
        """Each node for which the study names a data set, with that name."""
        if isinstance(self.datasets, msgspec.UnsetType):
            return {}
        names = [node.name for node in self.nodes]
        return {node: name for node, name in zip(names, self.datasets, strict=True) if name}

    # --- the settings that every study shows ---------------------------------------------------

    @property
    def protocol(self) -> str:
        return self.settings.protocol

    @property
    def edges(self) -> str:
        return self.settings.edges

    @property
    def noise(self) -> str:
        return self.settings.noise

    @property
    def delta(self) -> str:
        return self.settings.delta

    @property
    def coins(self) -> str:
        return self.settings.coins_used

    @property
    def backend(self) -> str:
        return self.settings.backend

    @property
    def preprocessing(self) -> str:
        return self.settings.preprocessing

    @property
    def dealer(self) -> Participant | None:
        return self.settings.dealer

    @property
    def shufflers(self) -> tuple[Participant, ...]:
        return self.settings.shufflers

    def settings_as(self, kind: type[Kind]) -> Kind:
        """The settings, known to be of one protocol. Raises: LocalProtocolError if they are not."""
        if not isinstance(self.settings, kind):
            raise LocalProtocolError(
                f"settings of {kind.__name__} were expected, the study runs {self.protocol!r}"
            )
        return self.settings

    def replaced(self, **changes: Any) -> Self:
        """This study with other values, given by key: its own keys and its settings'.

        Raises: StudyError for a key that neither the study nor its protocol has.
        """
        own = {key: value for key, value in changes.items() if key in self.__struct_fields__}
        others = {key: value for key, value in changes.items() if key not in own}
        settings = own.pop("settings", self.settings)
        known = keys_of(type(settings))
        for key in others:
            if key not in known:
                raise StudyError(
                    f"`{key}` is not a setting of protocol = {settings.protocol!r}, which has "
                    f"{named(known)}"
                )
        if others:
            settings = msgspec.structs.replace(settings, **others)
        return msgspec.structs.replace(self, settings=settings, **own)
