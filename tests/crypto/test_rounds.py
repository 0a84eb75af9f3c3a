"""Parties as generators: lockstep, an exact transcript, and blame for a reply of a wrong shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from umpc.crypto.rounds import (
    MAX_ROUNDS,
    Finished,
    Message,
    check_reply,
    resume,
    run_in_memory,
    silence,
)
from umpc.errors import LocalProtocolError, RemoteProtocolError

MESSAGE = Message("open", b"\1\2", 16, 1, 2)


def talker(rounds: int, name: bytes):
    heard = []
    for number in range(rounds):
        heard += yield Message(f"step {number}", name, 1, 8)
    return [message.payload for message in heard]


def test_every_party_hears_the_others_in_order():
    results, sent = run_in_memory([talker(2, b"a"), talker(2, b"b"), talker(2, b"c")])
    assert results == [[b"b", b"c"] * 2, [b"a", b"c"] * 2, [b"a", b"b"] * 2]
    assert [(line.round, line.party, line.message.step) for line in sent] == [
        (number + 1, party, f"step {number}") for number in range(2) for party in range(3)
    ]


def quiet(speaks: bool):
    heard = yield Message("open", b"a" if speaks else b"", 1, 8 if speaks else 0, 1)
    return [message.payload for message in heard]


def test_a_message_of_no_bits_is_heard_and_not_sent():
    """A party without a share in a layer takes part in its round."""
    results, sent = run_in_memory([quiet(True), quiet(False), quiet(True)])
    assert results == [[b"", b"a"], [b"a", b"a"], [b"a", b""]]
    assert [line.party for line in sent] == [0, 2]


def test_a_protocol_without_rounds_sends_nothing():
    assert run_in_memory([talker(0, b"a"), talker(0, b"b")]) == ([[], []], [])


def test_a_party_that_ends_early_is_found():
    with pytest.raises(
        LocalProtocolError, match=r"parties \[0\] ended before the others, in round 2"
    ):
        run_in_memory([talker(1, b"a"), talker(2, b"b")])


def test_a_protocol_that_never_ends_is_found():
    with pytest.raises(LocalProtocolError, match="1000 rounds"):
        run_in_memory([talker(2000, b"a"), talker(2000, b"b")])


def test_a_protocol_may_have_as_many_rounds_as_the_limit():
    with_limit = [talker(MAX_ROUNDS, b"a"), talker(MAX_ROUNDS, b"b")]
    assert run_in_memory(with_limit)[1][-1].round == MAX_ROUNDS
    with pytest.raises(LocalProtocolError, match="1000 rounds"):
        run_in_memory([talker(MAX_ROUNDS + 1, b"a"), talker(MAX_ROUNDS + 1, b"b")])


def test_a_party_is_started_resumed_and_finished():
    party = talker(1, b"a")
    assert resume(party, None) == Message("step 0", b"a", 1, 8)
    assert resume(party, [silence("step 0")]) == Finished([b""])
    assert repr(Finished(b"secret")) == "Finished(<redacted>)"


def test_a_reply_of_the_same_shape_is_taken():
    check_reply(replace(MESSAGE, payload=b"xy"), MESSAGE, "node-1")


@pytest.mark.parametrize(
    "change",
    [
        {"step": "masked_fields"},
        {"round": 1},
        {"count": 15},
        {"width": 2},
        {"payload": b"x"},
        {"payload": b"\1\2\0"},
    ],
    ids=str,
)
def test_a_reply_of_another_shape_names_its_sender_and_step(change):
    with pytest.raises(RemoteProtocolError, match="node-1 sent") as caught:
        check_reply(replace(MESSAGE, **change), MESSAGE, "node-1")
    assert (caught.value.culprit, caught.value.step) == ("node-1", "open")


def test_a_message_shows_its_shape_and_not_its_payload():
    assert repr(replace(MESSAGE, payload=b"secret")) == "Message(open, 16 × 1 bits)"
