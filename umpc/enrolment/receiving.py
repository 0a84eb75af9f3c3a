"""The requests that reach the authority: which ones are recorded, and which one is answered.

    invited ──► asked ──► admitted
                  └─────► declined

*Who may ask over the network.* Only a request that proves the one-time code of an invitation is
recorded. The first one binds the code to its key. A request of another key with the same code is
refused, and the record keeps when it came, so that the person who approves is warned. A request
that came in time may wait for its decision longer than the code counts. After the decision the code
is forgotten: only the very request that was decided on is answered again.

Nothing here needs the authority's key.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from datetime import datetime

from umpc.enrolment.register import ADMITTED, ASKED, DECLINED, Enrolment, Register
from umpc.enrolment.texts import Request, parse_time
from umpc.errors import CertificateError
from umpc.transport.certificates import clock

DECIDED = (ADMITTED, DECLINED)


class RequestReceiver:
    """Records requests in a register. Several threads and processes may do so at once."""

    def __init__(self, register: Register, now: Callable[[], datetime] = clock):
        self._register = register
        self._now = now

    def receive(self, request: Request) -> Enrolment:
        """Record a request, which then waits for a person. Raises: CertificateError."""
        name, role = request.names
        with self._register.locked():
            return self._receive(request, self._register.find(name, role))

    def answer(self, request: Request) -> Enrolment:
        """Return the enrolment of a request from the network, which is recorded if it is new.

        Every refusal has the same words, whether the name, the code or the date is wrong.

        Raises: CertificateError.
        """
        name, role = request.names
        with self._register.locked():
            known = self._register.find(name, role)
            if known is not None and self._is_same(known, request):
                return known
            if known is not None and known.state in DECIDED and known.proven:
                raise _unproven(name, role)
            if known is not None and self._proves(known, request):
                return self._receive(request, known, online=True)
        raise _unproven(name, role)

    def _receive(
        self, request: Request, known: Enrolment | None, *, online: bool = False
    ) -> Enrolment:
        name, role = request.names
        if known is not None and self._is_repeated(known, request):
            return known
        proven = known is not None and self._proves(known, request)
        if (request.proof or online) and not proven:
            raise _unproven(name, role)
        listed = known.member_address if known else ""
        entry = known if proven and known else Enrolment(name, role, ASKED, "")
        entry = entry.changed(
            state=ASKED,
            at=self._time(),
            request=request.encode(),
            proven=proven,
            address=request.address or listed,
            listed=listed,
            admission="",
            online=online,
        )
        self._register.put(entry)
        return entry

    def _is_same(self, known: Enrolment, request: Request) -> bool:
        """Whether the very same request is recorded, which proved its code when it came."""
        if not known.proven or not known.request:
            return False
        return hmac.compare_digest(known.request, request.encode())

    def _is_repeated(self, known: Enrolment, request: Request) -> bool:
        """Whether the record holds this request already. Raises: CertificateError for a rival."""
        if not known.request:
            return False
        held = Request.decode(known.request)
        if held.fingerprint == request.fingerprint:
            return known.state == ASKED and held.address == request.address
        if known.code and request.proves(bytes.fromhex(known.code)):
            self._register.put(known.changed(rival=self._time()))
            raise CertificateError(
                f"two requests with different keys used the invitation of {known.role} "
                f"{known.name!r}: somebody else had it, so invite the site again by another way",
                culprit=known.name,
            )
        return False

    def _proves(self, known: Enrolment, request: Request) -> bool:
        if not known.code or not request.proof or self._now() > parse_time(known.until):
            return False
        return request.proves(bytes.fromhex(known.code))

    def _time(self) -> str:
        return self._now().replace(microsecond=0).isoformat()


def _unproven(name: str, role: str) -> CertificateError:
    return CertificateError(
        f"the request of {role} {name!r} does not prove the code of an invitation that "
        "counts: invite the site again, and let it join with the new invitation",
        culprit=name,
    )
