"""The dealer's session deals afresh for every attempt, and the same chunk again alike."""

from __future__ import annotations

import pytest

from tests.support.studies import (
    GINI,
    KENDALL,
    SKEWNESS,
    SPEARMAN,
    TRIPLE,
    Entropy,
    make_attempt,
    make_study,
)
from umpc.dealer.material import MaterialDealer
from umpc.study.messages import Frame

COUNTS = [4, 0, 5, 6]
STUDIES = {
    "kendall": make_study(KENDALL, 4),
    "gini": make_study(GINI, 4),
    "two sums": make_study((KENDALL, GINI), 4, estimator="ratio"),
    "three products": make_study(TRIPLE, 4, degree=3),
    "pairs of three": make_study(SPEARMAN, 4, degree=3, edges="90"),
    "tables of three": make_study(SKEWNESS, 4, degree=3, edges="90"),
}
every_study = pytest.mark.parametrize("study", STUDIES)


def session_of(study: str = "kendall", label: str = "dealer") -> MaterialDealer:
    return MaterialDealer(make_attempt(STUDIES[study], COUNTS), Entropy(label))


def deal(session: MaterialDealer) -> list[tuple[int, Frame]]:
    """All material, as the dealer's process asks for it."""
    return [dealt for chunk in session.attempt.chunks() for dealt in session.deal_one(chunk)]


def test_every_node_has_a_seed_of_its_own_from_the_entropy():
    entropy = Entropy("dealer")
    session = session_of()
    seeds = [session.seed_frame(node) for node in range(4)]
    assert [frame.payload for frame in seeds] == [entropy(32) for _ in range(4)]
    assert {(frame.step, frame.count, frame.width) for frame in seeds} == {("node_seed", 1, 256)}


@every_study
def test_fresh_entropy_gives_fresh_material(study):
    first, second = (
        [frame.payload for _, frame in deal(session_of(study, label)) if frame.payload]
        for label in ("one", "two")
    )
    assert first and not set(first) & set(second) and len(set(first)) == len(first)


@every_study
def test_a_chunk_dealt_again_is_the_same(study):
    session = session_of(study)
    for chunk in session.attempt.chunks():
        assert list(session.deal_one(chunk)) == list(session.deal_one(chunk))


@every_study
def test_no_seed_is_in_anybodys_material(study):
    session = session_of(study)
    everything = b"".join(frame.payload for _, frame in deal(session))
    assert not any(session.seed_frame(node).payload in everything for node in range(4))


def test_several_sums_over_the_same_comparisons_need_their_keys_once():
    """Two sums of Kendall's kernel take a few products more than one, not another set of keys."""
    one, two = (
        MaterialDealer(
            make_attempt(make_study(kernels, 2, estimator=estimator), [4, 5]), Entropy("sums")
        )
        for kernels, estimator in ((KENDALL, "mean"), ((KENDALL, f"({KENDALL}) * 3"), "ratio"))
    )
    assert [len(frame.payload) for _, frame in deal(one)] == [
        len(frame.payload) for _, frame in deal(two)
    ]


def test_it_shows_nothing_of_itself():
    assert "redacted" in repr(session_of())
