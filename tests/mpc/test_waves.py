"""Small cells in waves, and batches: each chunk once, in the common order, within the limits."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.sessions import Run
from tests.support.studies import SKEWNESS
from umpc.errors import LocalProtocolError
from umpc.mpc import chunks as chunks_module
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import pattern_of
from umpc.testing import lying


def attempt_of(counts=(6, 5, 7, 4), **changes) -> SharedAttempt:
    return Run(counts, "waves", **changes).agree().begin().attempt


TRIPLES = {"kernels": SKEWNESS, "degree": 3, "edges": "60"}


@pytest.mark.parametrize("changes", [{}, TRIPLES], ids=["pairs", "triples"])
def test_batches_have_every_chunk_of_a_node_once_with_one_plan_and_party(changes):
    attempt = attempt_of(**changes)
    chunks = list(attempt.chunks())
    assert all(chunk.wave == 1 for chunk in chunks)
    for node in (None, *range(4)):
        batches = list(attempt.batches(node))
        due = [chunk for chunk in chunks if node is None or node in chunk.owners]
        assert sorted(map(chunks.index, due)) == sorted(
            chunks.index(chunk) for batch in batches for chunk in batch
        )
        assert any(len(batch) > 1 for batch in batches)
        for batch in batches:
            places = [0 if node is None else chunk.parties.index(node) for chunk in batch]
            assert len({pattern_of(chunk.owners) for chunk in batch}) == len(set(places)) == 1
            assert sum(chunk.count for chunk in batch) <= attempt.plan(batch[0]).chunk_edges
    assert [chunk for batch in attempt.batches() for chunk in batch] == chunks


def loads(attempt: SharedAttempt) -> Counter[tuple[int, int]]:
    """Return what each node has of each wave, in full chunks: (wave, node) → parts."""
    found: Counter[tuple[int, int]] = Counter()
    for chunk in attempt.chunks():
        for node in chunk.parties:
            found[chunk.wave, node] += chunk.count / attempt.plan(chunk).chunk_edges
    return found


@pytest.mark.parametrize("changes", [{}, TRIPLES], ids=["pairs", "triples"])
def test_no_node_has_more_of_a_wave_than_its_share(limit, changes):
    most = max(loads(attempt_of(**changes)).values()) / 2
    limit(chunks_module, WAVE_CHUNKS=most)
    attempt = attempt_of(**changes)
    chunks = list(attempt.chunks())
    numbers = [chunk.wave for chunk in chunks]
    assert numbers == sorted(numbers) and set(numbers) == set(range(1, max(numbers) + 1))
    assert len(set(numbers)) > 1
    assert max(loads(attempt).values()) <= most
    for node in range(4):
        assert list(attempt.chunks_of(node)) == [chunk for chunk in chunks if node in chunk.owners]


def test_large_cells_come_last_and_each_of_their_chunks_is_alone():
    with lying("everybody", small_cell=lambda honest: 6):
        attempt = attempt_of(edges="40")
        chunks = list(attempt.chunks())
        batches = list(attempt.batches())
    alone = [chunk for chunk in chunks if not chunk.wave]
    assert alone and chunks[-len(alone) :] == alone and len(alone) < len(chunks)
    assert all((chunk.count > 6) == (chunk.wave == 0) for chunk in chunks)
    assert [batch for batch in batches if not batch[0].wave] == [(one,) for one in alone]


def test_a_chunk_is_computed_once_alone_or_in_a_batch():
    run = Run((6, 5, 7, 4), "once").agree().begin().seed().fields()
    batch = max(run.attempt.batches(0), key=len)
    payloads = [run.material(chunk, 0) for chunk in batch]
    assert len(batch) > 1
    with pytest.raises(LocalProtocolError, match="once"):
        run.nodes[0].batch([batch[0], batch[0]], payloads[:1] * 2)
    assert run.nodes[0].batch(batch, payloads) is not None
    for again in (batch, batch[-1:]):
        with pytest.raises(LocalProtocolError, match="once"):
            run.nodes[0].batch(again, payloads[-len(again) :])
    with pytest.raises(LocalProtocolError, match="once"):
        run.nodes[0].protocol(batch[1], payloads[1], run.attempt.tree_hash())
