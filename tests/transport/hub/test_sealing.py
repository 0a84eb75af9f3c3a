"""umpc/transport/hub/sealing.py: only the two ends that signed a session open its envelopes."""

from __future__ import annotations

import pytest

from umpc.crypto.signing import MemoryAuthority
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.sealing import End, Opening, Parties, answer

AUTHORITY = MemoryAuthority("consortium")
NORTH, SOUTH, EAST = (End("node", name) for name in ("north", "south", "east"))
PARTIES = Parties(b"s" * 16, NORTH, SOUTH, "relay")


def credentials(end: End, authority: MemoryAuthority = AUTHORITY):
    return authority.credentials(end.name, end.role)


def seals(parties: Parties = PARTIES):
    """Return the seals of the initiator and of the responder."""
    opening = Opening(parties, credentials(parties.initiator))
    message, theirs, shown = answer(parties, credentials(parties.responder), opening.message)
    ours, certificate = opening.finish(message)
    assert shown == credentials(parties.initiator).certificate
    assert certificate == credentials(parties.responder).certificate
    return ours, theirs


def test_both_directions_open_and_show_nothing_of_the_plain_bytes():
    north, south = seals()
    for sender, receiver in ((north, south), (south, north)):
        bodies = [sender.close(pb.HUB_SEALED, b"a secret of 24 bytes....") for _ in range(3)]
        assert len({body for _, body in bodies}) == 3
        for number, body in bodies:
            assert b"secret" not in body
            assert receiver.open(pb.HUB_SEALED, number, body) == b"a secret of 24 bytes...."


def test_a_session_never_has_the_keys_of_another():
    (north, _), (_, south) = seals(), seals()
    number, body = north.close(pb.HUB_SEALED, b"x")
    with pytest.raises(RemoteProtocolError, match="altered"):
        south.open(pb.HUB_SEALED, number, body)


def test_whatever_the_hub_alters_is_noticed_and_blamed_on_it():
    for change in ("body", "number", "kind", "direction"):
        north, south = seals()
        number, body = north.close(pb.HUB_SEALED, b"x" * 40)
        kind, receiver = pb.HUB_SEALED, south
        if change == "body":
            body = body[:-1] + bytes([body[-1] ^ 1])
        elif change == "number":
            number += 1
        elif change == "kind":
            kind = pb.HUB_RESUME
        else:
            receiver = north
        with pytest.raises(RemoteProtocolError, match="altered") as caught:
            receiver.open(kind, number, body)
        assert caught.value.culprit == "relay", change


def test_a_repeated_or_late_envelope_is_noticed():
    north, south = seals()
    first, second, third = (north.close(pb.HUB_SEALED, bytes([i])) for i in range(3))
    assert south.open(pb.HUB_SEALED, *second) == b"\x01"
    for late in (first, second):
        with pytest.raises(RemoteProtocolError, match="second time, or out of its order"):
            south.open(pb.HUB_SEALED, *late)
    assert south.open(pb.HUB_SEALED, *third) == b"\x02"


def test_an_opening_counts_for_one_session_and_one_responder():
    message = Opening(PARTIES, credentials(NORTH)).message
    wrong = (
        (Parties(b"t" * 16, NORTH, SOUTH, "relay"), SOUTH, "did not sign"),
        (Parties(b"s" * 16, NORTH, EAST, "relay"), EAST, "did not sign"),
        (Parties(b"s" * 16, EAST, SOUTH, "relay"), SOUTH, "connected node 'north'"),
        (Parties(b"s" * 16, End("dealer", "north"), SOUTH, "relay"), SOUTH, "expected dealer"),
    )
    for parties, responder, words in wrong:
        with pytest.raises(CertificateError, match=words):
            answer(parties, credentials(responder), message)


def test_an_answer_counts_for_one_opening_and_of_one_responder():
    opening = Opening(PARTIES, credentials(NORTH))
    other = Opening(PARTIES, credentials(NORTH))
    to_other, _, _ = answer(PARTIES, credentials(SOUTH), other.message)
    with pytest.raises(CertificateError, match="did not sign"):
        opening.finish(to_other)
    parties = Parties(PARTIES.session, NORTH, EAST, "relay")
    to_east = Opening(parties, credentials(NORTH)).message
    by_east, _, _ = answer(parties, credentials(EAST), to_east)
    with pytest.raises(CertificateError, match="connected node 'east'"):
        opening.finish(by_east)
    with pytest.raises(CertificateError, match="did not sign"):
        opening.finish(opening.message.replace(b"north", b"south"))


def test_a_key_that_the_hub_exchanged_is_refused():
    opening = Opening(PARTIES, credentials(NORTH))
    shown = pb.HubHandshake.FromString(opening.message)
    stranger = credentials(NORTH, MemoryAuthority("another"))
    for changed in (
        pb.HubHandshake(certificate=shown.certificate, key=bytes(32), signature=shown.signature),
        pb.HubHandshake(certificate=shown.certificate, key=shown.key, signature=bytes(64)),
        pb.HubHandshake(certificate=stranger.certificate, key=shown.key, signature=shown.signature),
    ):
        with pytest.raises(CertificateError):
            answer(PARTIES, credentials(SOUTH), changed.SerializeToString())
    for junk in (b"", b"\xff" * 40, b"\x0a" + b"x" * 20_000):
        with pytest.raises(CertificateError):
            answer(PARTIES, credentials(SOUTH), junk)
