"""A study with a given hash: what the protocol derives takes a study's hash as 32 raw bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.studies import make_study
from umpc.study.document import Study


class _OfHash:
    def __init__(self, study: Study, hash: bytes):
        self._study, self.hash = study, hash

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)


def study_of(hash: bytes, names: Sequence[str], study: Study | None = None) -> Any:
    """A study of these nodes, which are named as `make_study` names them, with this hash."""
    study = study or make_study("a.x * b.x", len(names))
    assert [node.name for node in study.nodes] == list(names)
    return _OfHash(study, hash)
