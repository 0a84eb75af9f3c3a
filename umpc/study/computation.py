"""A study's computation: everything that decides what its release tells about a site's records.

A site's administrator allows a computation by its hash (`kernels` under [policy]). The numbers of a
study (ε, δ, edges, nodes) and its participants are not part of it: other rules bound these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from umpc.study.document import Study
from umpc.study.parts import FieldText

HASH_TAG = "umpc computation 1"
"""The first part of the text that `Computation.hash` hashes: its purpose and its version."""


@dataclass(frozen=True)
class Computation:
    """The computation of a study: the statistics, and their values.

    A new fact that decides what a release tells is one attribute here. `of` reads it from the
    study, and `hash` covers every attribute.

    kernels: their canonical texts, in the study's order; of a loss its name and parameters, without
        the weights, so that all steps of a training are one computation.
    fields: with bounds and public labels.
    where: the condition on records in its canonical spelling; empty without one.
    person, records_per_person: the column that tells people apart; empty and 0 without one.
    parts, strata: the values of a study that reports several; empty for others.
    """

    protocol: str
    adversary: str
    estimator: str
    sampling: str
    degree: int
    kernels: tuple[str, ...]
    fields: tuple[FieldText, ...]
    where: str = ""
    person: str = ""
    records_per_person: int = 0
    parts: tuple[tuple[str, str, int, str], ...] = ()
    strata: str = ""

    @classmethod
    def of(cls, study: Study) -> Self:
        """The computation of a study. Raises: KernelError."""
        return cls(
            protocol=study.protocol,
            adversary=study.adversary,
            estimator=study.estimator,
            sampling=study.sampling,
            degree=study.degree,
            kernels=study.settings.computed(tuple(each.text for each in study.parsed_kernels)),
            fields=study.fields,
            where=study.condition.text if study.condition else "",
            person=study.people.column if study.people else "",
            records_per_person=study.people.records if study.people else 0,
            parts=tuple(
                (part.statistic, part.estimator, part.sums, part.stratum) for part in study.several
            ),
            strata=study.stratum_field,
        )

    @property
    def hash(self) -> str:
        """SHA-256, in hex. The order of the fields and the spelling of numbers do not matter."""
        facts = {**vars(self), "fields": _canonical(self.fields)}
        for later in ("where", "person", "records_per_person", "parts", "strata"):
            if not facts[later]:
                del facts[later]  # so that earlier allow-lists hold
        covered = json.dumps([HASH_TAG, facts], sort_keys=True)
        return hashlib.sha256(covered.encode()).hexdigest()


def computation_hash(study: Study) -> str:
    """The hash by which an administrator allows what a study computes. Raises: KernelError."""
    return Computation.of(study).hash


def _canonical(fields: Sequence[FieldText]) -> list[tuple[object, ...]]:
    """The fields sorted by name, with exact numbers."""
    found: list[tuple[object, ...]] = []
    for field in sorted(fields, key=lambda each: each.name):
        exact = field.schema()
        numbers = map(str, (exact.lower, exact.upper, exact.resolution))
        found.append((field.name, *numbers, field.categories, field.public))
    return found
