"""The study: the one document that coordinator, dealer and every node agree on at the start.

It travels as canonical JSON. A hash of it is the study's identity: a node answers with the hash of
the bytes that it read, and everything later (joint seed, material, budget, stored result) is bound
to that hash. The document holds kernels as text, never as code.

*Document keys.* The keys of a study's document, and each of them as code reads it. A key that came
later is UNSET where a study does not have it, so that the study's identity is as before; its
property gives the plain value.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, TypeVar

import msgspec

from umpc.crypto.prg import digest
from umpc.errors import (
    InvalidEpsilon,
    LocalProtocolError,
    StudyError,
)
from umpc.protocol_version import PROTOCOL
from umpc.study.parts import (
    LAPLACE,
    FieldText,
    Missing,
    Participant,
    Person,
    StudyPart,
    describe_complete,
    exact,
    groups_of_sums,
    names_of,
    shares_of_sums,
)
from umpc.study.settings import (
    HONEST,
    Settings,
    keys_of,
    named,
    unused_additions,
    without_addresses,
)
from umpc.ustat.condition import Condition, parse_condition
from umpc.ustat.estimators import PAIR_MEDIAN
from umpc.ustat.kernel import Kernel
from umpc.ustat.pair_quantiles import ends_of
from umpc.ustat.schema import Schema

Kind = TypeVar("Kind", bound=Settings)


Value = TypeVar("Value")


def _given(value: Value | msgspec.UnsetType, otherwise: Value) -> Value:
    return otherwise if isinstance(value, msgspec.UnsetType) else value


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
        that follows from the nodes follows from them (`attempt.py`).
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
        missing = _given(self.missing, None)
        return tuple(node.name for node in missing.nodes) if missing else ()

    @property
    def most_missing(self) -> int:
        """How many nodes may be lost before the release, in all."""
        return _given(self.may_miss, 0)

    @property
    def names_required(self) -> tuple[str, ...]:
        """The names of the nodes without which there is no result."""
        return _given(self.required, ())

    @property
    def people(self) -> Person | None:
        """The column that tells people apart; None where each record is protected by itself."""
        return _given(self.person, None)

    @property
    def several(self) -> tuple[StudyPart, ...]:
        """The study's parts; none where it reports one value."""
        return _given(self.parts, ())

    @property
    def stratum_field(self) -> str:
        """The field whose categories are strata; empty where there are none."""
        return _given(self.strata, "")

    def index_of(self, node: str) -> int:
        """The place of a node in the study. Raises: StudyError."""
        for index, participant in enumerate(self.nodes):
            if participant.name == node:
                return index
        names = ", ".join(participant.name for participant in self.nodes)
        raise StudyError(f"node {node!r} is not one of the study's nodes: {names}")

    def dataset_of(self, node: str) -> str:
        """The name of a node's data set, empty where the study names none. Raises: StudyError."""
        return self.named_datasets.get(self.nodes[self.index_of(node)].name, "")

    @property
    def named_datasets(self) -> dict[str, str]:
        """Each node for which the study names a data set, with that name."""
        names = (node.name for node in self.nodes)
        pairs = zip(names, _given(self.datasets, ()), strict=False)
        return {node: name for node, name in pairs if name}

    # --- the settings that every study shows ---------------------------------------------------

    @property
    def protocol(self) -> str:
        return self.settings.protocol

    @property
    def edges(self) -> str:
        return self.settings.edges

    @property
    def edge_grade(self) -> str:
        """The grade that decides how far one record can move an edge's value.

        It is the study's own, but where liars' tables are proved to be tables of records.
        """
        return HONEST if self.settings.proves_tables else self.adversary

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


HASH_TAG = b"umpc study 3"
IDENTITY_VERSION = "0.2.0"
"""The version in a study's identity, whatever version of the protocol the processes speak: what was
asked does not change with the messages that answer it. `HASH_TAG` counts changes of meaning.
Former tags (`former.py`): 1 had the settings of all protocols side by side; 2 took a field
without a resolution as whole numbers."""


class Study(StudyKeys, frozen=True):
    """One computation: the statistic, the participants, the privacy, and the protocol.

    Its keys are those of `StudyKeys`.
    """

    @cached_property
    def hash(self) -> bytes:
        """The study's identity, 32 bytes: the question that is asked, and of whom.

        Addresses, unused additions and the version of the protocol are not part of it. A node that
        moves or is upgraded is the same node, because its certificate proves its name. The study
        then stays the same, and asking it again costs nothing.
        """
        document = msgspec.to_builtins(self.question)
        for key in unused_additions(self.settings):
            del document["settings"][key]
        return digest(HASH_TAG, msgspec.json.encode(document))

    @property
    def question(self) -> Self:
        """This study without addresses, and with the version of all identities."""
        missing = self.missing
        if not isinstance(missing, msgspec.UnsetType):
            missing = msgspec.structs.replace(missing, nodes=_without_addresses(missing.nodes))
        return msgspec.structs.replace(
            self,
            nodes=_without_addresses(self.nodes),
            settings=without_addresses(self.settings),
            missing=missing,
            version=IDENTITY_VERSION,
        )

    @cached_property
    def whole(self) -> Self:
        """The study with all its nodes, under whose hash each node charges it, once.

        Raises: StudyError where no study leaves these nodes out.
        """
        missing = self.missing
        if isinstance(missing, msgspec.UnsetType):
            return self
        nodes = list(self.nodes)
        try:
            for place, node in zip(missing.places, missing.nodes, strict=True):
                nodes.insert(place, node)
        except (ValueError, OverflowError) as error:
            raise StudyError(f"a place for each missing node was expected: {error}") from error
        return msgspec.structs.replace(
            self,
            nodes=tuple(nodes),
            max_colluding=missing.max_colluding,
            datasets=missing.datasets,
            missing=msgspec.UNSET,
        )

    # --- what follows from the document --------------------------------------------------------

    @cached_property
    def schema(self) -> Schema:
        return Schema(field.schema() for field in self.fields)

    @cached_property
    def parsed_kernels(self) -> tuple[Kernel, ...]:
        """The kernels, parsed and checked. Raises: KernelError."""
        symmetric = not self.two_sample
        return tuple(
            Kernel.from_text(text, self.schema, self.degree, symmetric) for text in self.kernels
        )

    @cached_property
    def pair_ends(self) -> tuple[float, ...]:
        """The thresholds of a pair median between both ends of its values; none for others."""
        return ends_of(self.parsed_kernels) if self.estimator == PAIR_MEDIAN else ()

    @cached_property
    def condition(self) -> Condition | None:
        """The condition on records, parsed and checked; None without one. Raises: StudyError."""
        where = _given(self.where, None)
        return None if where is None else parse_condition(where, self.schema)

    @property
    def described_records(self) -> str:
        """Which records count, in words."""
        columns = len(self.fields) + (self.people is not None)
        where = self.condition.text if self.condition else ""
        return describe_complete(columns, where, several=bool(self.several))

    @property
    def protected(self) -> str:
        """The protected records in words: one record, or the records of one person."""
        return "one record" if self.people is None else str(self.people)

    @property
    def two_sample(self) -> bool:
        return self.sampling == "two_sample"

    @property
    def label(self) -> str:
        """The field that tells the two classes apart.

        Raises: StudyError where not exactly one public field with two categories exists.
        """
        public = [field.name for field in self.fields if field.public]
        if len(public) != 1:
            came = f"fields {', '.join(map(repr, public))}" if public else "no field"
            raise StudyError(
                f"two_sample sampling takes exactly one label that is public, and {came} came with "
                f"public = true; write public = true for the label, and for no other field"
            )
        categories = self.schema[public[0]].categories
        if len(categories) != 2:
            came = str(len(categories)) if categories else "bounds of numbers"
            raise StudyError(
                f"field {public[0]!r} is the label of two_sample sampling, which takes two "
                f"categories, and {came} came; write categories = [FIRST, SECOND], the words of "
                f"the two classes in the table"
            )
        return public[0]

    @property
    def single_statistics(self) -> tuple[Self, ...]:
        """For each of several values a study of it alone, with all of ε; else this study."""
        found, first = [], 0
        for part in self.several:
            last = first + part.sums
            found.append(
                msgspec.structs.replace(
                    self,
                    statistic=part.statistic,
                    kernels=self.kernels[first:last],
                    estimator=part.estimator,
                    split=(),
                    parts=msgspec.UNSET,
                    strata=msgspec.UNSET,
                )
            )
            first = last
        return tuple(found) or (self,)

    @property
    def strata_share_epsilon(self) -> bool:
        """Whether the strata of a statistic share its part of ε (`several.py`)."""
        return bool(
            self.stratum_field and self.edge_grade == HONEST and self.settings.noise in LAPLACE
        )

    @cached_property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Each sum's part of ε. Strata may share one, so these may add up to more than ε.

        Raises: StudyError where the parts that are split do not add up to 1.
        """
        if self.estimator == PAIR_MEDIAN:
            # disjoint cells: a pair that moves changes two of them (`pair_quantiles.py`)
            shares: tuple[Fraction, ...] = (Fraction(1, 2),) * len(self.kernels)
        elif self.settings.is_joint or not self.several:
            shares = self._split(len(self.kernels), "sum")
        else:
            is_shared = self.strata_share_epsilon
            of_names = self.split_by_name
            shares = shares_of_sums(self.several, of_names, self.degree, is_shared=is_shared)
        return tuple(self.exact_epsilon * share for share in shares)

    @property
    def split_by_name(self) -> dict[str, Fraction]:
        """The part of ε of each of several statistics, by name. Raises: as `epsilons`."""
        names = names_of(self.several)
        return dict(zip(names, self._split(len(names), "statistic"), strict=True))

    @cached_property
    def sums_sharing_epsilon(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the sums that share one part of ε; most often one sum each."""
        if self.estimator == PAIR_MEDIAN:
            return (tuple(range(len(self.kernels))),)
        if self.strata_share_epsilon:
            return groups_of_sums(self.several)
        return tuple((place,) for place in range(len(self.kernels)))

    def _split(self, count: int, of: str) -> tuple[Fraction, ...]:
        """The parts of ε as the study splits it. Raises: StudyError."""
        if self.settings.is_joint:
            return (Fraction(1),) * count
        parts = tuple(exact(part, "split") for part in self.split)
        parts = parts or (Fraction(1, count),) * count
        if len(parts) != count or min(parts) <= 0 or sum(parts) != 1:
            raise StudyError(
                f"split takes {count} positive part(s) of epsilon, one for each {of}, that add up "
                f'to 1; got {", ".join(self.split)}; exact parts are written as "1/3"'
            )
        return parts

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """ε as a fraction. Raises: InvalidEpsilon."""
        try:
            return exact(self.epsilon, "epsilon")
        except StudyError as error:
            raise InvalidEpsilon(error.message) from error

    @cached_property
    def exact_delta(self) -> Fraction:
        """The δ that the study asks for. Noise of finite bits adds a δ of its own."""
        return exact(self.delta, "delta") if self.delta else Fraction(0)

    @property
    def honest(self) -> int:
        """h = N − t: the number of nodes whose noise alone must suffice."""
        return len(self.nodes) - self.max_colluding


def _without_addresses(nodes: Sequence[Participant]) -> tuple[Participant, ...]:
    return tuple(Participant(node.name, "") for node in nodes)


def dealer_of(study: Study) -> tuple[str, str]:
    """The name and address of the study's dealer. Raises: LocalProtocolError without one."""
    if study.dealer is None:
        raise LocalProtocolError("a study without a dealer has nobody to ask")
    return study.dealer.name, study.dealer.address
