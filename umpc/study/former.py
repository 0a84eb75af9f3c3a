"""The identities that a study had under former tags.

| tag | released by | the document |
|---|---|---|
| 1 | umpc 0.1 | the settings of all protocols side by side |
| 2 | an earlier state of umpc 0.2 | a field without a resolution counted as whole numbers |

A study that was released then has its share in the nodes' ledgers under its former identity. A node
that finds it there refuses the study clearly, because the same study would otherwise be charged a
second time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from umpc.crypto.prg import digest
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.settings import Settings

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
    settings = _second_settings(study.question.settings)
    return _hash(SECOND_TAG, SECOND_KEYS, study, settings=settings, version=SECOND_VERSION)


def _second_settings(settings: Settings) -> dict[str, Any]:
    """The settings as tag 2 had them: without keys that came later and are unused."""
    found: dict[str, Any] = msgspec.to_builtins(settings)
    usual = type(settings)()
    unused = [key for key in settings.newer if getattr(settings, key) == getattr(usual, key)]
    return {key: value for key, value in found.items() if key not in unused}


def former_hash(study: Study) -> bytes:
    """The identity of a study under tag 1: 32 bytes."""
    settings = {
        key: getattr(study.settings, key, usual) for key, usual in OF_SOME_PROTOCOLS.items()
    }
    return _hash(FORMER_TAG, FORMER_KEYS, study, **settings, version=FORMER_VERSION)


def _hash(tag: bytes, keys: tuple[str, ...], study: Study, **own: Any) -> bytes:
    """The hash of a document with these keys. Args: own: values that the study does not have."""
    own["fields"] = [_former_field(field) for field in study.fields]
    asked = study.question  # without addresses
    document = {key: own[key] if key in own else getattr(asked, key) for key in keys}
    return digest(tag, msgspec.json.encode(document))


def _former_field(field: FieldText) -> dict[str, Any]:
    """A field as tags 1 and 2 had it, whose resolution was 1 by default."""
    facts = {key: getattr(field, key) for key in ("name", "lower", "upper")}
    return {
        **facts,
        "resolution": field.step,
        "categories": field.categories,
        "public": field.public,
    }
