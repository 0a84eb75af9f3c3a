"""The dealer's session: material in the common order, fresh for every attempt, and each node's own."""

from __future__ import annotations

import pytest

from umpc.dealer.session import DealerSession
from umpc.mpc.frames import Frame
from umpc.mpc.material import DealtPart, dealt_bytes

from ..mpc.studies import GINI, KENDALL, Entropy, make_attempt, make_study

COUNTS = [4, 0, 5, 6]


def session_of(label: str = "dealer", kernel: str = KENDALL) -> DealerSession:
    return DealerSession(make_attempt(make_study(kernel, 4), COUNTS), Entropy(label))


def deal(session: DealerSession) -> list[tuple[int, Frame]]:
    """All material, as the dealer's process asks for it."""
    return [dealt for chunk in session.attempt.chunks() for dealt in session.deal_one(chunk)]


@pytest.mark.parametrize("kernel", [KENDALL, GINI])
def test_frames_come_in_the_common_order_of_chunks(kernel):
    session = session_of(kernel=kernel)
    places = [(node, frame.step, frame.owners, frame.chunk, frame.count) for node, frame in deal(session)]
    assert places == [
        (node, "material", chunk.owners, chunk.number, chunk.count)
        for chunk in session.attempt.chunks()
        for node in chunk.owners
    ]


def test_every_frame_decodes_to_its_party_and_has_the_size_it_says():
    session = session_of()
    for node, frame in deal(session):
        party = frame.owners.index(node)
        assert (
            len(frame.payload)
            == frame.count * frame.width // 8
            == frame.count * dealt_bytes(session.attempt.plan, party)
        )
        DealtPart.decode(session.attempt.plan, frame.payload, party, frame.count)


def test_every_node_has_a_seed_of_its_own_from_the_entropy():
    entropy = Entropy("dealer")
    session = session_of()
    seeds = [session.seed_frame(node) for node in range(4)]
    assert [frame.payload for frame in seeds] == [entropy(32) for _ in range(4)]
    assert {(frame.step, frame.count, frame.width) for frame in seeds} == {("node_seed", 1, 256)}


def test_fresh_entropy_gives_fresh_material():
    first, second = ([frame.payload for _, frame in deal(session_of(label))] for label in ("one", "two"))
    assert not set(first) & set(second) and len(set(first)) == len(first)


def test_a_chunk_dealt_again_is_the_same():
    session = session_of()
    chunk = next(session.attempt.chunks())
    assert list(session.deal_one(chunk)) == list(session.deal_one(chunk))


def test_no_seed_is_in_anybodys_material():
    session = session_of()
    everything = b"".join(frame.payload for _, frame in deal(session))
    assert not any(session.seed_frame(node).payload in everything for node in range(4))


def test_it_shows_nothing_of_itself():
    assert "redacted" in repr(session_of())
