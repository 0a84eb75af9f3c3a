"""A study's computation: everything that decides what its release tells about a site's records.

A site's administrator allows a computation by its hash (`kernels` under [policy]). The numbers of a
study (ε, δ, edges, nodes) and its participants are not part of it: other rules bound these.

The identities that a study had under former tags.

| tag | released by | the document |
|---|---|---|
| 1 | umpc 0.1 | the settings of all protocols side by side |
| 2 | an earlier state of umpc 0.2 | a field without a resolution counted as whole numbers |

A study that was released then has its share in the nodes' ledgers under its former identity. A node
that finds it there refuses the study clearly, because the same study would otherwise be charged a
second time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from umpc.crypto.prg import digest
from umpc.study.document import Study
from umpc.study.parts import FieldText, exact

HASH_TAG = "umpc computation 1"
"""The first part of the text that `Computation.hash` hashes: its purpose and its version."""
LATER = ("where", "person", "records_per_person", "parts", "strata", "coarser")
"""Facts that came when administrators had lists of hashes. They enter it where they are used."""
COARSER = ("bins", "levels")
"""The settings of protocols that make values coarser before anything is computed from them."""


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
    coarser: the bins and levels that make the fields coarser, where they are not the usual ones.
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
    coarser: tuple[tuple[str, object], ...] = ()

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
            coarser=_coarser(study),
        )

    @property
    def hash(self) -> str:
        """SHA-256, in hex. The order of the fields and the spelling of numbers do not matter."""
        facts = {**vars(self), "fields": _canonical(self.fields)}
        for later in LATER:
            if not facts[later]:
                del facts[later]  # so that earlier allow-lists hold
        covered = json.dumps([HASH_TAG, facts], sort_keys=True)
        return hashlib.sha256(covered.encode()).hexdigest()


def computation_hash(study: Study) -> str:
    """The hash by which an administrator allows what a study computes. Raises: KernelError."""
    return Computation.of(study).hash


def unusual(study: Study) -> dict[str, Any]:
    """The settings that make values coarser and are not the protocol's usual ones, by key."""
    settings = study.settings
    usual = type(settings)()
    values: dict[str, Any] = {key: getattr(settings, key, None) for key in COARSER}
    found = {key: value for key, value in values.items() if value != getattr(usual, key, None)}
    if bins := found.get("bins"):
        found["bins"] = [each for each in bins if not settings.has_usual_bins(each, study.schema)]
    return {key: value for key, value in found.items() if value}


def _coarser(study: Study) -> tuple[tuple[str, object], ...]:
    found = unusual(study)
    if bins := found.get("bins"):
        cuts = ((each, [str(exact(cut, "bins")) for cut in each.cuts]) for each in bins)
        found["bins"] = sorted((each.field, each.count, exactly) for each, exactly in cuts)
    return tuple(found.items())


def _canonical(fields: Sequence[FieldText]) -> list[tuple[object, ...]]:
    """The fields sorted by name, with exact numbers."""
    found: list[tuple[object, ...]] = []
    for field in sorted(fields, key=lambda each: each.name):
        schema = field.schema()
        numbers = map(str, (schema.lower, schema.upper, schema.resolution))
        found.append((field.name, *numbers, field.categories, field.public))
    return found


# --- hashes of former versions --------------------------------------------------------------------


FORMER_VERSION = "0.1.0"
FORMER_TAG = b"umpc study 1"
SECOND_VERSION = "0.2.0"
SECOND_TAG = b"umpc study 2"
_FIRST_KEYS = ("name", "statistic", "kernels", "fields", "epsilon")
_LAST_KEYS = ("seconds_per_step", "version")
FORMER_KEYS = (
    *_FIRST_KEYS,
    *("edges", "max_colluding", "coordinator", "dealer", "nodes", "degree", "estimator", "split"),
    *("sampling", "protocol", "noise", "delta", "backend", "preprocessing"),
    *("bins", "rounding", "levels", "shufflers"),
    *_LAST_KEYS,
)
SECOND_KEYS = (
    *_FIRST_KEYS,
    *("max_colluding", "coordinator", "nodes", "settings", "degree", "estimator", "split"),
    *("sampling", "adversary"),
    *_LAST_KEYS,
)
"""The keys of each document, in the order in which they were hashed."""
OF_SOME_PROTOCOLS = {"bins": (), "rounding": "simple", "levels": 0}
"""Settings that every document of tag 1 had, and their values where a protocol has none."""


def former_hashes(study: Study) -> tuple[tuple[str, bytes], ...]:
    """The identities of a study under former tags, each with the versions that used it."""
    return (
        ("umpc 0.1", former_hash(study)),
        ("an earlier state of umpc 0.2", second_hash(study)),
    )


def second_hash(study: Study) -> bytes:
    """The identity of a study under tag 2: 32 bytes."""
    own = study.question.settings
    settings, usual = msgspec.to_builtins(own), type(own)()
    for key in own.newer:
        if getattr(own, key) == getattr(usual, key):
            del settings[key]
    return _hash_of(SECOND_TAG, SECOND_KEYS, study, settings=settings, version=SECOND_VERSION)


def former_hash(study: Study) -> bytes:
    """The identity of a study under tag 1: 32 bytes."""
    settings = {
        key: getattr(study.settings, key, usual) for key, usual in OF_SOME_PROTOCOLS.items()
    }
    return _hash_of(FORMER_TAG, FORMER_KEYS, study, **settings, version=FORMER_VERSION)


def _hash_of(tag: bytes, keys: tuple[str, ...], study: Study, **own: Any) -> bytes:
    """The hash of a document with these keys. Args: own: values that the study does not have."""
    own["fields"] = [
        {
            "name": field.name,
            "lower": field.lower,
            "upper": field.upper,
            "resolution": field.step,
            "categories": field.categories,
            "public": field.public,
        }
        for field in study.fields
    ]
    asked = study.question  # without addresses
    document = {key: own[key] if key in own else getattr(asked, key) for key in keys}
    return digest(tag, msgspec.json.encode(document))
