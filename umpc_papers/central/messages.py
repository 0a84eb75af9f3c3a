"""The messages of `central`: a node's records on their way, and the curator's private number.

A node's message is 32 fresh random bytes and its raw records (`columns.py`). The coordinator, whom
all trust, computes one private number from all of them and shows nothing else.

All of the curator's randomness is expanded from the nodes' parts. They lie in the nodes' ledgers
beside the records, so the same study asked again gives the same number, bit for bit, and no second
draw for one charge. Nobody but the curator knows all parts: as long as one node's part is unknown
to others, the noise is. The stream depends on the noise's predicted size too. Where another
machine's floating point tuned a mechanism differently, the draw is another one, because one uniform
number under two scales would give the value away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from umpc.crypto.prg import Stream, derive, digest
from umpc.dp.random_bits import RandomBits
from umpc.protocols.base.one_message import OneMessage
from umpc.study.document import Study
from umpc.study.making_report import Limits, covers_all_sets
from umpc.study.parts import exact
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc.ustat.error_law import HEAVY_TAILS
from umpc.ustat.sampling import edge_count
from umpc.ustat.schema import FieldSchema
from umpc_papers.central.central_mechanisms import Choice
from umpc_papers.central.columns import (
    SEED_BYTES,
    fields_of,
    message_bytes,
    pack_records,
    unpack_records,
)
from umpc_papers.central.hajek import bernstein_concentration
from umpc_papers.central.private_spread import FAILURE
from umpc_papers.central.settings import (
    DEGENERATE,
    EDGES,
    PRIVATE,
    SUBSAMPLED,
    CentralSettings,
)
from umpc_papers.central.uniformity import UniformityTest, uniformity_test
from umpc_papers.exact_sampling import draw_seed


@dataclass(frozen=True)
class CuratedEstimate:
    """The curator's release, and what is known of its errors.

    std: of the noise, exactly.
    step: of the noise of complete averages, discrete Laplace; 0 where its grid is fine.
    shape: of the noise's law; HEAVY_TAILS for the Hájek mechanisms.
    sampling: a bound of the standard deviation from taking `sets` sets instead of all.
    most: the most of these sets that contain one record.
    """

    value: float
    std: float
    records: int
    sampling: float
    sets: int
    most: int
    step: float = 0.0
    shape: float = 1.0


@dataclass(frozen=True)
class CuratorMessages(OneMessage):
    """A kernel's mean by a trusted curator."""

    study: Study
    smaller_by = "coarser resolutions"

    def choice(self, records: int) -> Choice:
        """The study's mechanism, for so many records."""
        study = self.study
        count = 0
        if study.noise in SUBSAMPLED:
            count = edge_count(study.edges, records, study.degree)
        settings = study.settings_as(CentralSettings)
        return Choice(
            study.noise,
            study.parsed_kernels[0],
            study.exact_epsilon,
            count,
            exact(settings.spread, "spread") if settings.spread not in ("", PRIVATE) else None,
            self.concentration(records // settings.chunks),
            settings.chunks,
            settings.private,
            settings.exact_share(),
        )

    def concentration(self, records: int) -> Fraction | None:
        """ξ, in values; None for the range of the kernel.

        For a degenerate kernel it is that of corollary 2, with the constants of
        `bernstein_concentration` and the variance C²/4 of Popoviciu.
        """
        study = self.study
        test = self.test(records)
        if test is not None:
            return test.concentration
        written = study.settings_as(CentralSettings).concentration
        if written in (PRIVATE, EDGES):
            return None
        if written != DEGENERATE:
            return exact(written, "concentration") if written else None
        width = study.parsed_kernels[0].interval.width
        if not width or records < study.degree:
            return None
        return bernstein_concentration(records, study.degree, width, width**2 / 4, FAILURE)

    def test(self, records: int) -> UniformityTest | None:
        """The test of uniformity, where the study asks for one. Raises: TooFewRecords."""
        study = self.study
        distance = study.settings_as(CentralSettings).distance
        if not distance:
            return None
        kernel = study.parsed_kernels[0]
        return uniformity_test(kernel, exact(distance, "distance"), records, study.exact_epsilon)

    def fixed_noise(self, records: int) -> float | None:
        """The noise's standard deviation where no table changes it; None for the Hájek one."""
        return self.usual_std(records) if self.study.noise == "laplace" else None

    def limits(self) -> Limits | None:
        """The statement that the interval rests on, where a study states more than the range."""
        settings = self.study.settings_as(CentralSettings)
        if not settings.knows_more():
            return None
        stated = f"concentration = {settings.concentration!r}" if settings.concentration else ""
        stated = stated or f"spread = {settings.spread!r}"
        return Limits(
            covers_all_sets(self.study) + f", if {stated} is true of the records",
            f"noise and interval rest on {stated}. If it does not hold, the estimate is further "
            "off; epsilon holds in any case",
        )

    def median_in_words(self, records: int) -> str:
        """The chance of large errors that a median of means promises; empty without one."""
        choice = self.choice(records)
        if choice.chunks == 1:
            return ""
        family = choice.family(records, bits_of(bytes(SEED_BYTES)))
        error, chance = choice.miss_of_median(records, family)
        return (
            f"the median of {choice.chunks} parts errs by more than {error:.4g} with a chance of "
            f"at most {chance:.2g}"
        )

    @property
    def fields(self) -> tuple[FieldSchema, ...]:
        return fields_of(self.study.parsed_kernels[0])

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        """A node's message. Nothing in it hides a record."""
        return pack_records(self.fields, columns, draw_seed(bits))

    def message_bytes(self, counts: ClassCounts) -> int:
        return message_bytes(self.fields, sum(counts))

    def check(self, message: bytes, counts: ClassCounts) -> None:
        unpack_records(self.fields, message, sum(counts))

    def check_records(self, records: int) -> None:
        """Raises: TooFewRecords, RangeError, StudyError where there can be no estimate."""
        self.choice(records).check_records(records)

    def aggregate(
        self, messages: Sequence[bytes], counts: Sequence[ClassCounts]
    ) -> CuratedEstimate:
        """The private number, from messages that were checked."""
        parts = [
            unpack_records(self.fields, message, sum(both))
            for message, both in zip(messages, counts, strict=True)
        ]
        pooled = {
            field.name: np.concatenate([columns[field.name] for _, columns in parts])
            for field in self.fields
        }
        records = sum(map(sum, counts))
        choice = self.choice(records)
        seed = self.seed_of([part for part, _ in parts], records)
        value, settled = choice.release(pooled, bits_of(seed))
        family = choice.family(records, bits_of(seed))
        return CuratedEstimate(
            value=float(value),
            std=settled.noise_std(records, family),
            records=records,
            sampling=choice.sampling_bound(records),
            sets=choice.sets(records),
            most=int(family.occurrences.max()),
            step=settled.noise_step(records),
            shape=HEAVY_TAILS if settled.name.startswith("hajek") else 1.0,
        )

    def seed_of(self, parts: Sequence[bytes], records: int) -> bytes:
        size = self.usual_std(records).hex()
        return derive(digest(b"umpc curator 1", *parts), self.study.noise, size)

    def usual_std(self, records: int) -> float:
        """The noise's standard deviation.

        It is exact, except for which sets a subsampled mechanism will draw.
        """
        return usual_std(self.choice(records), records)

    def predicted_std(self, columns: Columns, first: int) -> float:
        return self.usual_std(len(next(iter(columns.values()))))


@lru_cache(maxsize=64)
def usual_std(choice: Choice, records: int) -> float:
    """The noise's standard deviation, kept: a run asks three times, a plan for many studies."""
    return choice.noise_std(records, choice.family(records, bits_of(bytes(SEED_BYTES))))


def bits_of(seed: bytes) -> RandomBits:
    """The random bits that a seed of 32 bytes stands for, from the start."""
    stream = Stream(seed)

    def bits(count: int) -> int:
        return int.from_bytes(stream.bytes((count + 7) // 8), "little") >> (-count % 8)

    return bits
