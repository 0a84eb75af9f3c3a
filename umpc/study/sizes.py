"""How large an attempt is: members, records, |E|, degrees, sensitivities.

All of it is known before anybody has the joint seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, comb
from typing import Protocol, TypeVar

from umpc.crypto.prg import digest
from umpc.errors import RangeError, TooFewRecords
from umpc.study.document import Study
from umpc.study.settings import HONEST, edge_change
from umpc.ustat.sampling import (
    BERNOULLI,
    UNBALANCED,
    bernoulli_count,
    edge_count,
    greatest_degree,
    max_degree,
    pairings_of,
    two_sample_edge_count,
    two_sample_max_degree,
)

ClassCounts = tuple[int, int]
"""A node's records of the first class, and all others; without classes all are others."""

MAX_MEMBERS = 1024
"""The most nodes of a study: every process checks all of them (docs/scale.md)."""
COUNT_TAG = b"umpc bernoulli edges 1"
MAX_RECORDS = 1 << 26
"""The most records that all nodes may have together."""
MAX_PAIRINGS = 1 << 16
"""The most pairings of all records: each is drawn by itself."""
MAX_SAMPLED = 1 << 26
"""The most edges that are listed one by one. All sets of records are never listed."""
MAX_SAMPLED_LARGER = 1 << 23
"""The limit for edges of three and more records, whose drawing takes far more memory.

It also holds for edges that are drawn without regard to degrees.
"""


def most_sampled(study: Study) -> int:
    """The most edges of a study that can be listed one by one."""
    larger = study.degree > 2 or study.sampling in UNBALANCED
    return MAX_SAMPLED_LARGER if larger else MAX_SAMPLED


class Counted(Protocol):
    """A message that says how many records a node has."""

    @property
    def records(self) -> int: ...
    @property
    def first_class(self) -> int: ...


Said = TypeVar("Said", bound=Counted)


def counted_once(study: Study, said: Sequence[Said]) -> Sequence[Said]:
    """Each record's one holder: all nodes, or the first of those that hold shares of one table.

    Their protocol has checked that all of these say as many records.
    """
    return said[:1] if study.settings.shares_tables else said


@dataclass(frozen=True)
class Member:
    """A node's answer to a study: its number of records, a commitment, an X25519 public key.

    first_class: how many of the records are of the first class, where labels are public.
    certificate, signature: the node's, in DER and over the rest (`members.py`); empty in estimates.
    """

    name: str
    records: int
    commitment: bytes
    public_key: bytes
    first_class: int = 0
    certificate: bytes = field(default=b"", repr=False)
    signature: bytes = field(default=b"", repr=False)

    @property
    def classes(self) -> ClassCounts:
        """The records of the first class, and all others."""
        return self.first_class, self.records - self.first_class


@dataclass(frozen=True)
class Sizes:
    """The numbers that follow from a study and from how many records the nodes have.

    holders: how many nodes have at least one record.
    """

    study: Study
    records: int
    first_class: int = 0
    holders: int = 1

    @classmethod
    def of(cls, study: Study, members: Iterable[Counted]) -> Sizes:
        """The sizes for members, or for what they released."""
        members = counted_once(study, tuple(members))
        counts = [member.records for member in members]
        firsts = [member.first_class for member in members]
        return cls(study, sum(counts), sum(firsts), sum(count > 0 for count in counts))

    @cached_property
    def if_honest(self) -> Sizes:
        """The sizes of this study in grade honest, to say what its own grade costs."""
        if self.study.adversary == HONEST:
            return self
        return replace(self, study=self.study.replaced(adversary=HONEST))

    @property
    def classes(self) -> ClassCounts:
        """The records of all nodes: of the first class, and all others."""
        return self.first_class, self.records - self.first_class

    @cached_property
    def sets(self) -> int:
        """The number of sets of records that E is chosen from."""
        if self.study.two_sample:
            return self.first_class * (self.records - self.first_class)
        return comb(self.records, self.study.degree)

    def _check_classes(self) -> None:
        """Raises: TooFewRecords where one class has no record; it names the word for the class."""
        if all(self.classes):
            return
        label = self.study.label
        words = self.study.schema[label].categories
        lacking = self.classes.index(0)
        raise TooFewRecords(
            f"a two-sample statistic needs records of both classes, and of {self.records} records "
            f"of the nodes together none has {label} = {words[lacking]!r}: there are "
            f"{self.classes[0]} of the first class {words[0]!r}, and {self.classes[1]} of the "
            f"second class {words[1]!r}, as which every other word counts. Compare the categories "
            f"of {label!r} in the study with the words of the sites' tables, letter by letter"
        )

    @cached_property
    def edges(self) -> int:
        """|E|.

        Raises: TooFewRecords, StudyError; RangeError where a list of E would not fit memory.
        """
        study = self.study
        rule = study.edges
        if study.two_sample:
            self._check_classes()
            count = two_sample_edge_count(rule, *self.classes)
        else:
            count = edge_count(rule, self.records, study.degree)
        if study.sampling == BERNOULLI and count < self.sets:
            seed = digest(COUNT_TAG, study.name.encode(), f"{count} of {self.sets}".encode())
            count = bernoulli_count(count, self.sets, seed)
        if self.records > MAX_RECORDS:
            raise RangeError(
                f"the nodes have {self.records} records together, at most {MAX_RECORDS} are "
                f"possible"
            )
        most = most_sampled(study)
        pairings = pairings_of(rule)
        if pairings is not None and pairings > MAX_PAIRINGS:
            raise RangeError(
                f'edges = "{rule}", at most {MAX_PAIRINGS} pairings can be drawn; ask for fewer, '
                f"or for all"
            )
        if most < count and (count < self.sets or pairings is not None):
            raise RangeError(
                f"edges = {count}, at most {most} can be sampled; ask for fewer, or for all"
            )
        if len(study.nodes) ** study.degree >= 1 << 63:
            raise RangeError(
                f"{len(study.nodes)} nodes are too many for edges of {study.degree} records"
            )
        return count

    @cached_property
    def max_degree(self) -> int:
        """δ_max: the most edges that one record is in."""
        if self.study.two_sample:
            return two_sample_max_degree(self.edges, *self.classes)
        pairings = pairings_of(self.study.edges)
        if pairings is not None:
            return pairings
        if self.study.sampling in UNBALANCED and self.study.degree > 1:
            return greatest_degree(self.edges, self.records, self.study.degree)
        return max_degree(self.edges, self.records, self.study.degree)

    @cached_property
    def sensitivities(self) -> tuple[int, ...]:
        """δ_max·Δf in units of each kernel: the most that replacing one record changes its sum.

        Δf is that of the study's grade: against lying nodes it is the robust sensitivity. Where a
        study protects people, this is for all records of one: as often as one person may have any.
        """
        people = self.study.people
        most = people.records if people else 1
        changes = (
            edge_change(kernel, self.study.edge_grade) / kernel.unit
            for kernel in self.study.parsed_kernels
        )
        return tuple(most * self.max_degree * ceil(change) for change in changes)
