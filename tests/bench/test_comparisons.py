"""bench.comparisons: what it measures is a chunk that both owners take to its end."""

from __future__ import annotations

import pytest

from bench.comparisons import OWNERS, ComparedChunk


@pytest.mark.parametrize("way", ("numpy", "as chosen here"))
def test_a_chunk_is_dealt_and_evaluated_to_its_end(way, monkeypatch):
    if way == "numpy":
        monkeypatch.setattr("umpc.mpc.masked.tasks.serves", lambda plan: False)
    chunk = ComparedChunk(8)
    assert chunk.dealing_seconds() >= 0
    assert len(chunk.owner_seconds()) == OWNERS
