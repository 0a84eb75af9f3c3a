"""How large an attempt is: members, records, |E|, degrees, sensitivities. Known before anybody has the joint seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING

from umpc.crypto.ring import Ring, smallest_ring
from umpc.errors import RangeError
from umpc.study.document import Study
from umpc.ustat.sampling import (
    edge_count,
    max_degree,
    pairings_of,
    two_sample_edge_count,
    two_sample_max_degree,
)

if TYPE_CHECKING:
    from umpc.study.messages import Released

MAX_RECORDS = 1 << 26
"""Records of all nodes together."""
MAX_PAIRINGS = 1 << 16
"""Pairings of all records: each is drawn by itself."""
MAX_RELEASED = 1 << 17
"""Values of pairs that one node can release: 1 MiB of 8 bytes each."""
MAX_SAMPLED = 1 << 26
"""Edges that are listed one by one; all sets of records are never listed, so "all" has no such limit."""
MAX_SAMPLED_LARGER = 1 << 23
"""The same for edges of three and more records, whose drawing takes far more memory."""
MAX_CELLS = 1 << 16
"""Groups of owners of a complete set of edges."""


@dataclass(frozen=True)
class Member:
    """What a node says when it accepts a study: how many records it has, a commitment, an X25519 key.

    first_class: how many of the records are of the first class, where the study has public labels.
    """

    name: str
    records: int
    commitment: bytes
    public_key: bytes
    first_class: int = 0

    @property
    def classes(self) -> tuple[int, int]:
        """Records of the first and of the second class."""
        return self.first_class, self.records - self.first_class


@dataclass(frozen=True)
class Sizes:
    """What follows from a study and the number of records: known before anybody has the joint seed."""

    study: Study
    records: int
    first_class: int = 0
    holders: int = 1
    """Nodes that have records."""

    @classmethod
    def of(cls, study: Study, members: Iterable[Member | Released]) -> Sizes:
        members = tuple(members)
        counts, firsts = (
            [member.records for member in members],
            [member.first_class for member in members],
        )
        return cls(study, sum(counts), sum(firsts), sum(count > 0 for count in counts))

    @cached_property
    def sets(self) -> int:
        """How many sets of records there are to choose E from."""
        if self.study.two_sample:
            return self.first_class * (self.records - self.first_class)
        return comb(self.records, self.study.degree)

    @cached_property
    def edges(self) -> int:
        """|E|. Raises: TooFewRecords, StudyError, RangeError where a list of E would not fit memory."""
        rule, study = self.study.edges, self.study
        if study.two_sample:
            count = two_sample_edge_count(rule, self.first_class, self.records - self.first_class)
        else:
            count = edge_count(rule, self.records, study.degree)
        if self.records > MAX_RECORDS:
            raise RangeError(
                f"the nodes have {self.records} records together, at most {MAX_RECORDS} are possible"
            )
        if study.noise_of_pairs and count * len(study.kernels) > MAX_RELEASED:
            raise RangeError(
                f'"{study.protocol}" releases a value of every pair: {count * len(study.kernels)} of them, at most '
                f"{MAX_RELEASED} are possible; ask for fewer edges"
            )
        most = MAX_SAMPLED if study.degree <= 2 else MAX_SAMPLED_LARGER
        pairings = pairings_of(rule)
        if pairings is not None and pairings > MAX_PAIRINGS:
            raise RangeError(
                f'edges = "{rule}", at most {MAX_PAIRINGS} pairings can be drawn; ask for fewer, or for all'
            )
        if most < count and (count < self.sets or pairings is not None):
            raise RangeError(
                f"edges = {count}, at most {most} can be sampled; ask for fewer, or for all"
            )
        cells = comb(self.holders + study.degree - 1, study.degree)
        if count == self.sets and pairings is None and cells > MAX_CELLS and not study.central:
            raise RangeError(
                f"all sets of {study.degree} records of {self.holders} nodes have {cells} different groups of owners, "
                f"at most {MAX_CELLS} are possible; ask for a number of edges instead of all"
            )
        if len(study.nodes) ** study.degree >= 1 << 63:
            raise RangeError(
                f"{len(study.nodes)} nodes are too many for edges of {study.degree} records"
            )
        return count

    @cached_property
    def max_degree(self) -> int:
        """δ_max: in how many edges a record may be."""
        if self.study.two_sample:
            return two_sample_max_degree(
                self.edges, self.first_class, self.records - self.first_class
            )
        if (pairings := pairings_of(self.study.edges)) is not None:
            return pairings
        return max_degree(self.edges, self.records, self.study.degree)

    @cached_property
    def sensitivities(self) -> tuple[int, ...]:
        """δ_max·Δf in units of each kernel: what replacing one record changes in its sum, at most."""
        return tuple(
            self.max_degree * kernel.sensitivity_units for kernel in self.study.parsed_kernels
        )

    def ring(self, noise_tails: Sequence[int]) -> Ring:
        """The ring that holds every sum and its noise (but for a probability of 2^-64). Raises: RangeError."""
        if self.study.central:  # nothing is summed under shares
            return smallest_ring(0)
        kernels = zip(self.study.parsed_kernels, noise_tails, strict=True)
        return smallest_ring(
            max(self.edges * kernel.magnitude_units + tail for kernel, tail in kernels)
        )
