"""The errors of sessions that end by a word from outside: redirected, or refused by the peer."""

from __future__ import annotations

from umpc.errors import CertificateError, PeerLost, PeerUnavailable, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.session import Session


def redirected(session: Session, envelope: pb.HubEnvelope) -> CertificateError:
    """Return the error for an opening that the hub took to another process."""
    hub, source = session.parties.hub, envelope.source
    return CertificateError(
        f"hub {hub!r} connected {source.role} {source.name!r}, expected {session.other}; "
        "look at the hub",
        culprit=hub,
    )


def refusal(session: Session, body: bytes) -> UmpcError:
    """Return the error for a session that the other side refused, or has forgotten.

    Nobody signed a refusal, so its words are shown and no more than a loss is concluded from them.
    """
    peer, hub = session.other.name, session.parties.hub
    if session.is_open:
        return PeerLost(
            f"{peer} went away: it knows nothing of the session through hub {hub!r}; its own log "
            "says why",
            culprit=peer,
        )
    said = body.decode("utf-8", "replace")[:500]
    shown = "".join(each if each.isprintable() else "?" for each in said) or "it does not listen"
    error = CertificateError if said.startswith("CertificateError: ") else PeerUnavailable
    words = shown.removeprefix("CertificateError: ")
    return error(f"{peer} refused a session through hub {hub!r}: {words}", culprit=peer)
