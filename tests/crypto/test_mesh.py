"""Messages that differ from peer to peer arrive; parties that do not fit each other are refused."""

from __future__ import annotations

import pytest

from umpc.crypto.rounds import MeshLine, Message, run_mesh, side_by_side, to_all
from umpc.errors import LocalProtocolError


def said(text: str) -> Message:
    return Message("open", text.encode(), len(text), 8)


def teller(own: int, members: int):
    """In round 1 each member is sent another word; in round 2 only the successor is sent one."""
    came = yield {peer: said(f"{own} to {peer}") for peer in range(members) if peer != own}
    heard = {sender: message.payload.decode() for sender, message in came.items()}
    came = yield {(own + 1) % members: said("next")}
    return heard, sorted(came)


def test_everybody_hears_what_was_said_to_it_and_no_more():
    results, transcript = run_mesh([teller(own, 3) for own in range(3)])
    for own, (heard, came) in enumerate(results):
        assert heard == {peer: f"{peer} to {own}" for peer in range(3) if peer != own}
        assert came == [(own - 1) % 3]
    assert MeshLine(1, 2, 0, said("2 to 0")) in transcript and len(transcript) == 6 + 3


def greets(text: str, rounds: int = 1):
    heard = []
    for _ in range(rounds):
        (reply,) = yield said(text)
        heard.append(reply.payload.decode())
    return heard


def test_protocols_of_two_run_side_by_side():
    parties = [
        side_by_side({peer: greets(f"{own}{peer}") for peer in range(3) if peer != own})
        for own in range(3)
    ]
    results, transcript = run_mesh(parties)
    assert results[1] == {0: ["01"], 2: ["21"]} and {line.round for line in transcript} == {1}


def test_who_hears_nothing_is_told_that_nothing_was_said():
    mesh = side_by_side({1: greets("a")})
    assert next(mesh) == {1: said("a")}
    with pytest.raises(StopIteration) as stop:
        mesh.send({})
    assert stop.value.value == {1: [""]}


def test_protocols_without_rounds_end_at_once():
    def ready(peer: int):
        return peer
        yield

    assert run_mesh([side_by_side({1: ready(1), 2: ready(2)})]) == ([{1: 1, 2: 2}], [])
    assert run_mesh([side_by_side({})]) == ([{}], [])


def test_protocols_of_unlike_length_are_refused():
    mesh = side_by_side({1: greets("a", 1), 2: greets("b", 2)})
    next(mesh)
    with pytest.raises(
        LocalProtocolError, match=r"protocols with \[1\] ended before those with \[2\]"
    ):
        mesh.send({1: said("x"), 2: said("y")})


def test_a_broadcast_gets_its_replies_in_the_order_of_its_peers():
    def party(own: int):
        replies = yield said(str(own))
        return [reply.payload.decode() for reply in replies]

    peers = [[peer for peer in range(3) if peer != own] for own in range(3)]
    results, _ = run_mesh([to_all(party(own), peers[own]) for own in range(3)])
    assert results == [["1", "2"], ["0", "2"], ["0", "1"]]


def test_parties_that_do_not_fit_are_refused():
    def silent(rounds: int):
        for _ in range(rounds):
            yield {}

    with pytest.raises(
        LocalProtocolError, match=r"parties \[0\] ended before the others, in round 2"
    ):
        run_mesh([silent(1), silent(2)])
    with pytest.raises(LocalProtocolError, match="did not end"):
        run_mesh([silent(2000)])
