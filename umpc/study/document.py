"""The study: the one document that coordinator, dealer and every node agree on at the start.

It travels as canonical JSON. A hash of it is the study's identity: a node answers with the hash of
the bytes that it read, and everything later (joint seed, material, budget, stored result) is bound
to that hash. The document holds kernels as text, never as code.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Self

import msgspec

from umpc.crypto.prg import digest
from umpc.errors import (
    InvalidEpsilon,
    StudyError,
)
from umpc.study.document_keys import StudyKeys
from umpc.study.grades import HONEST
from umpc.study.parts import Participant, describe_complete, exact
from umpc.study.settings import unused_additions, without_addresses
from umpc.study.several import LAPLACE, groups_of_sums, names_of, shares_of_sums
from umpc.ustat.condition import Condition, parse_condition
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema

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
    def condition(self) -> Condition | None:
        """The condition on records, parsed and checked; None without one. Raises: StudyError."""
        if isinstance(self.where, msgspec.UnsetType):
            return None
        return parse_condition(self.where, self.schema)

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
            self.stratum_field and self.adversary == HONEST and self.settings.noise in LAPLACE
        )

    @cached_property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Each sum's part of ε. Strata may share one, so these may add up to more than ε.

        Raises: StudyError where the parts that are split do not add up to 1.
        """
        if not self.several:
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
        if self.strata_share_epsilon:
            return groups_of_sums(self.several)
        return tuple((place,) for place in range(len(self.kernels)))

    def _split(self, count: int, of: str) -> tuple[Fraction, ...]:
        """The parts of ε as the study splits it. Raises: StudyError."""
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
