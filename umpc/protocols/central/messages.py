"""protocol = "central" as a study has it: what a node shows the curator, and what the curator makes of it.

A node's message is 32 fresh random bytes and its raw records (`dp.central.columns`); the coordinator, whom all trust,
computes one private number from all of them and shows nothing else. A baseline: the coordinator sees every record.

Once. All of the curator's randomness is expanded from the nodes' parts. They lie in the nodes' ledgers beside the
records, so the same study asked again gives the same number, bit for bit, and no second draw for one charge. Nobody
but the curator knows all parts: as long as one node's is unknown to others, the noise is. The stream depends on the
noise's predicted size too: where another machine's floating point tuned a mechanism differently, the draw is another,
for one uniform under two scales would give the value away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import Stream, derive, digest
from umpc.dp.exact_sampling import draw_seed
from umpc.dp.random_bits import RandomBits
from umpc.protocols.central.central_mechanisms import Choice
from umpc.protocols.central.columns import (
    SEED_BYTES,
    fields_of,
    message_bytes,
    pack_records,
    unpack_records,
)
from umpc.protocols.central.settings import SUBSAMPLED
from umpc.study.document import Study
from umpc.ustat.clear import Columns
from umpc.ustat.sampling import edge_count
from umpc.ustat.schema import FieldSchema

Counts = tuple[int, int]
"""As of `umpc.protocols.local.messages`: without classes the first is 0."""


@dataclass(frozen=True)
class CuratedEstimate:
    """What a curator releases of so many records, and what is known of its errors.

    std: of the noise, exactly. sampling: a bound of the standard deviation from taking `sets` sets instead of all.
    most: of these sets, with one record.
    """

    value: float
    std: float
    records: int
    sampling: float
    sets: int
    most: int


@dataclass(frozen=True)
class OfCurator:
    """A kernel's mean by a trusted curator."""

    study: Study

    def choice(self, records: int) -> Choice:
        study = self.study
        kernel = study.parsed_kernels[0]
        count = edge_count(study.edges, records, study.degree) if study.noise in SUBSAMPLED else 0
        return Choice(study.noise, kernel, study.exact_epsilon, count)

    @property
    def fields(self) -> tuple[FieldSchema, ...]:
        return fields_of(self.study.parsed_kernels[0])

    def randomise(self, columns: Columns, counts: Counts, bits: RandomBits) -> bytes:
        """A node's message; the name is the seam's, for nothing here hides a record."""
        return pack_records(self.fields, columns, draw_seed(bits))

    def message_bytes(self, counts: Counts) -> int:
        return message_bytes(self.fields, sum(counts))

    def check(self, message: bytes, counts: Counts) -> None:
        """Raises: EncodingError where a message does not decode."""
        unpack_records(self.fields, message, sum(counts))

    def check_records(self, records: int) -> None:
        """Raises: TooFewRecords, RangeError, StudyError where no estimate can be made of so many."""
        self.choice(records).check_records(records)

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[Counts]) -> CuratedEstimate:
        """The private number. Raises: EncodingError, but `check` finds it first and knows whose message it is."""
        pairs = zip(messages, counts, strict=True)
        parts = [unpack_records(self.fields, message, sum(both)) for message, both in pairs]
        pooled = {
            field.name: np.concatenate([columns[field.name] for _, columns in parts])
            for field in self.fields
        }
        records = sum(map(sum, counts))
        choice, seed = self.choice(records), self._seed([part for part, _ in parts], records)
        value, family = (
            choice.estimate(pooled, bits_of(seed)),
            choice.family(records, bits_of(seed)),
        )
        return CuratedEstimate(
            value=float(value),
            std=choice.noise_std(records, family),
            records=records,
            sampling=choice.sampling_bound(records),
            sets=family.count,
            most=int(family.occurrences.max()),
        )

    def _seed(self, parts: Sequence[bytes], records: int) -> bytes:
        return derive(
            digest(b"umpc curator 1", *parts), self.study.noise, self.usual_std(records).hex()
        )

    def usual_std(self, records: int) -> float:
        """The noise's standard deviation: exact, but for which sets a subsampled mechanism will draw."""
        choice = self.choice(records)
        return choice.noise_std(records, choice.family(records, bits_of(bytes(SEED_BYTES))))

    def predicted_std(self, columns: Columns, first: int) -> float:
        return self.usual_std(len(next(iter(columns.values()))))


def bits_of(seed: bytes) -> RandomBits:
    """The random bits that a seed of 32 bytes stands for, from the start."""
    stream = Stream(seed)
    return lambda count: int.from_bytes(stream.bytes((count + 7) // 8), "little") >> (-count % 8)
