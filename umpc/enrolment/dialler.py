"""The joining site asks the listening authority, and waits until a person has decided.

Whoever answers must show a certificate of the invitation's authority (`pinned_tls.py`). Before that
the site sends nothing. The one-time code itself is never sent: the request proves it.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from umpc.enrolment.members import ConsortiumMember, parse_members
from umpc.enrolment.pinned_tls import HOST, pinned_tls
from umpc.enrolment.register import ADMITTED, ASKED, DECLINED
from umpc.enrolment.texts import AdmissionText, Invitation, Request, authority_of, grouped
from umpc.errors import CertificateError, PeerUnavailable
from umpc.transport.certificates import fingerprint
from umpc.transport.diagnose import split_address

SECONDS = 20
"""Longest time of one call."""
MOST_BYTES = 1 << 21
"""Longest answer: an admission with its list of revoked certificates, and the members."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 15.0
GROWTH = 1.5
HOUR = 3600
OFFLINE = "or add --offline and send the request by another way"


@dataclass(frozen=True)
class EnrolmentAnswer:
    """The authority's answer. admission: None while a person has yet to decide."""

    admission: AdmissionText | None = None
    members: tuple[ConsortiumMember, ...] = ()


def ask(invitation: Invitation, request: Request) -> EnrolmentAnswer:
    """Send a request to the invitation's authority, and return its answer.

    Raises: PeerUnavailable if nobody answers. CertificateError if somebody else answers, or if the
        authority refuses or declines.
    """
    status, content = _post(invitation, request.encode().encode())
    found = _parse(invitation, content)
    if found.get("state") == ADMITTED and status == http.client.OK:
        members = tuple(parse_members(found.get("members")))
        return EnrolmentAnswer(AdmissionText.decode(str(found.get("admission"))), members)
    if found.get("state") == ASKED and status == http.client.OK:
        return EnrolmentAnswer()
    if found.get("state") == DECLINED:
        raise CertificateError(
            "the authority declined the request: call it, and ask for another invitation"
        )
    if status >= http.client.INTERNAL_SERVER_ERROR:
        raise PeerUnavailable(
            f"the authority at {invitation.address} cannot answer now: call it, {OFFLINE}"
        )
    raise CertificateError(f"the authority refused: {_plain(found.get('message'))}")


def wait_until_admitted(
    question: Callable[[], EnrolmentAnswer],
    hours: float,
    *,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> EnrolmentAnswer:
    """Ask until the authority has admitted the site. The pauses become longer.

    After the first answer an authority that is away for a while is asked again.

    Raises: PeerUnavailable after so many hours; as `ask`.
    """
    until = now() + hours * HOUR
    answer, seconds = question(), FIRST_PAUSE
    while answer.admission is None:
        if now() + seconds > until:
            raise PeerUnavailable(
                f"the authority has not decided within {hours:g} hours. It has the request: run "
                "the same command again to go on"
            )
        pause(seconds)
        seconds = min(GROWTH * seconds, LONGEST_PAUSE)
        try:
            answer = question()
        except PeerUnavailable:
            continue
    return answer


def _post(invitation: Invitation, body: bytes) -> tuple[int, bytes]:
    host, port = split_address(invitation.address)
    connection = _PinnedConnection(host, port, invitation.authority)
    try:
        connection.request("POST", "/enrol", body, {"Content-Type": "text/plain"})
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_BYTES)
    except ssl.SSLCertVerificationError as error:
        own = grouped(fingerprint(authority_of(invitation.authority)))
        raise CertificateError(
            f"the authority {own} of the invitation was expected at {invitation.address}, and "
            f"somebody else answers there ({error.verify_message}). Nothing was sent. Call the "
            f"authority: its address is wrong, or somebody is on the line; {OFFLINE}"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise PeerUnavailable(
            f"the authority at {invitation.address} was expected, and the connection failed "
            f"({reason}): let it run `umpc enrol listen`, and run the same command again, {OFFLINE}"
        ) from None
    finally:
        connection.close()


class _PinnedConnection(http.client.HTTPSConnection):
    """HTTPS to any address, whose server must show the authority's own certificate."""

    def __init__(self, host: str, port: int, authority: bytes):
        self._pinned = pinned_tls(authority)
        super().__init__(host, port, timeout=SECONDS, context=self._pinned)

    def connect(self) -> None:
        """Connect, and check the certificate before a byte is sent."""
        http.client.HTTPConnection.connect(self)
        self.sock = self._pinned.wrap_socket(self.sock, server_hostname=HOST)


def _parse(invitation: Invitation, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    except (ValueError, RecursionError):
        pass
    raise CertificateError(
        f"the answer of the authority at {invitation.address} is malformed: ask it for its "
        "version of umpc"
    )


def _plain(message: object) -> str:
    """Return text from the network as one printable line."""
    text = str(message)[:400]
    return "".join(each if each.isprintable() else "?" for each in text)
