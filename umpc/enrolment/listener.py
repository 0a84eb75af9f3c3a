"""The listening authority: it takes requests over the network, and returns decisions.

    POST /enrol    the text of a request    →    {"state": "asked" | "admitted" | "declined", …}

A person approves in another process, with `umpc enrol approve`. This process therefore signs
nothing: it has no key of the authority in its memory, only the register's files. With a
`SignInOffice` it also takes coordinators' sign-ins, and signs those (`sign_in.py`).

*What a stranger gains.* Nothing is recorded without the proof of an invitation's code, and every
refusal has the same words. A call has a limit on its bytes and on its seconds, and a place has one
on its calls.

*Visits.* Limits of the listening authority: how often one place may call, and how often it may
fail.

A code has 128 bits, so nobody guesses one. The limits keep a stranger from taking all threads of
the listener, and make a wrong code rare enough for a person to read each line of the log. A place
is an IPv4 address, or the first 48 bits of an IPv6 address: one connection has no more of them.

All people of an institution may have one address. So no failure of one, of a code or of a sign-in,
keeps another from signing in. A token is signed, so nobody finds one by trying many. The log tells
a few failed sign-ins of one place in an hour.
"""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any

from umpc.enrolment.register import (
    ADMITTED,
    Enrolment,
    Register,
    RequestReceiver,
    members_of,
)
from umpc.enrolment.sign_in import SignInOffice, SignInRequest
from umpc.enrolment.texts import Request
from umpc.errors import CertificateError, ConfigError, UmpcError
from umpc.local_server import LocalCall, LocalServer, hang_up_after
from umpc.transport.addresses import refuse_if_taken, split_address

log = logging.getLogger("umpc.enrolment")

PATH = "/enrol"
MOST_BYTES = 1 << 14
"""The limit of a request. One of a site has about 900."""
PAUSE_SECONDS = 10
"""Longest time without a byte."""
REQUEST_SECONDS = 5
"""Longest time until a call has begun TLS and sent its whole request. So silent callers of a few
places do not hold all threads."""
CALL_SECONDS = 20
"""Longest time of the rest of a call."""


class EnrolmentDesk:
    """The listener's answers, without a socket.

    Args: folder: of the authority. sign_in: signs who has signed in; None refuses them.
    """

    def __init__(self, folder: Path, sign_in: SignInOffice | None = None):
        self._folder = folder
        self._sign_in = sign_in
        self._receiver = RequestReceiver(Register(folder / "enrolments"))
        self._told: set[str] = set()

    def is_sign_in(self, text: str) -> bool:
        """Whether a text from the network is for the sign-in, as far as its beginning tells."""
        return self._sign_in is not None and text.startswith(f"umpc-{SignInRequest.KIND}-")

    def read(self, text: str) -> Request | SignInRequest:
        """Return a text from the network. Raises: CertificateError, ConfigError."""
        if self.is_sign_in(text):
            return SignInRequest.decode(text)
        request = Request.decode(text)
        _ = request.names  # checks the signature
        return request

    def answer(self, request: Request | SignInRequest) -> dict[str, Any]:
        """Return the answer to a request. Raises: CertificateError, PeerUnavailable."""
        if isinstance(request, SignInRequest):
            assert self._sign_in is not None  # `read`
            admission = self._sign_in.admit(request).encode()
            log.info("signed in: %s", request.institution)
            return {"state": ADMITTED, "admission": admission, "members": []}
        entry = self._receiver.answer(request)
        self._tell(entry, request)
        if entry.state == ADMITTED:
            members = [asdict(each) for each in members_of(self._folder)]
            return {"state": entry.state, "admission": entry.admission, "members": members}
        return {"state": entry.state}

    def _tell(self, entry: Enrolment, request: Request) -> None:
        """Write one line for each request and each decision."""
        line = f"{entry.state}: {entry.role} {entry.name!r}, fingerprint {request.fingerprint}"
        if line not in self._told:
            self._told.add(line)
            log.info("%s", line)


@contextmanager
def listening(
    desk: EnrolmentDesk,
    context: ssl.SSLContext,
    address: str,
    *,
    visits: Visits | None = None,
) -> Iterator[str]:
    """Listen inside the block, and yield the address. Raises: ConfigError, AddressInUse."""
    host, port = split_address(address)
    refuse_if_taken(host, port, address)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    server = _Server((host, port), family, desk, context, visits or Visits())
    with server.served() as shown:
        yield shown


class _Server(LocalServer):
    """One thread for each call, as many as `visits` allows."""

    def __init__(
        self,
        address: tuple[str, int],
        family: int,
        desk: EnrolmentDesk,
        context: ssl.SSLContext,
        visits: Visits,
    ):
        self.address_family = family
        self.desk = desk
        self.context = context
        self.visits = visits
        super().__init__(address, _Handler)

    def enter(self, address: str) -> bool:
        """Whether a call may go on."""
        return self.visits.enter(address, time.monotonic())

    def leave(self, address: str) -> None:
        """Take note of the end of a call."""
        self.visits.leave(address)


class _Handler(LocalCall):
    """One call: TLS, one request, one answer."""

    server: _Server
    timeout = PAUSE_SECONDS

    def setup(self) -> None:
        """Begin TLS, with a limit on the time until the request is there."""
        self.request.settimeout(PAUSE_SECONDS)
        self._line = self.request.dup()
        self._limit = hang_up_after(REQUEST_SECONDS, self._line)
        try:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        except BaseException:
            self._end()
            raise
        super().setup()

    def finish(self) -> None:
        """End TLS and the connection."""
        try:
            super().finish()
        finally:
            self.request.close()
            self._end()

    def _end(self) -> None:
        self._limit.cancel()
        self._line.close()

    def do_POST(self) -> None:
        """Answer a request."""
        content = self.body(4 * MOST_BYTES)  # what stays unread may lose the answer
        self._limit.cancel()
        self._limit = hang_up_after(CALL_SECONDS, self._line)
        if self.path != PATH or not 0 < len(content) <= MOST_BYTES:
            self._refuse(HTTPStatus.BAD_REQUEST, f"POST {PATH} with a request's text was expected")
            return
        text = content.decode("ascii", "replace")
        is_sign_in = self.server.desk.is_sign_in(text)
        if not is_sign_in and not self.server.visits.may_try(
            self.client_address[0], time.monotonic()
        ):
            self._refuse(HTTPStatus.FORBIDDEN, "too many wrong codes came from here: wait an hour")
            return
        try:
            request = self.server.desk.read(text)
        except (CertificateError, ConfigError) as error:
            self._failed(error, is_sign_in)
            return
        try:
            self._answer(HTTPStatus.OK, self.server.desk.answer(request))
        except UmpcError as error:
            if error.culprit is not None:
                self._failed(error, is_sign_in)
                return
            log.error("%s", error.message)  # of the authority's own files, or an institution's keys
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "the authority cannot answer now")

    def _failed(self, error: UmpcError, is_sign_in: bool) -> None:
        """Refuse a request that proves nothing, and count it for its place."""
        place = self.client_address[0]
        if self.server.visits.failed(place, time.monotonic(), is_sign_in=is_sign_in):
            log.warning("refused a request from %s: %s", place, error.message)
        self._refuse(HTTPStatus.FORBIDDEN, error.message)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._answer(status, {"state": "refused", "message": message})

    def _answer(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        self.send(status, {"Content-Type": "application/json"}, json.dumps(answer).encode())


# --- visits ---------------------------------------------------------------------------------------

MOST_AT_ONCE = 32
MOST_OF_ONE_PLACE = 8
CALLS = 60
CALLS_SECONDS = 60
FAILURES = 10
FAILURES_SECONDS = 3600
MOST_PLACES = 4096
"""Places that are remembered. The one that called longest ago is forgotten."""


@dataclass
class _Caller:
    """open: calls that have not ended. calls, failures, sign_ins: their times in seconds.

    failures: of codes. sign_ins: those that failed, and that the log tells.
    """

    open: int = 0
    calls: deque[float] = field(default_factory=lambda: deque(maxlen=CALLS))
    failures: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))
    sign_ins: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))


class Visits:
    """The calls of each place. Any thread may use it; times come from the caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: OrderedDict[str, _Caller] = OrderedDict()
        self._open = 0

    def enter(self, address: str, now: float) -> bool:
        """Count a call, and return whether it may go on. If so, `leave` must follow."""
        with self._lock:
            place = self._place(address)
            if self._open >= MOST_AT_ONCE or place.open >= MOST_OF_ONE_PLACE:
                return False
            if _is_full(place.calls, now - CALLS_SECONDS):
                return False
            place.calls.append(now)
            place.open += 1
            self._open += 1
            return True

    def leave(self, address: str) -> None:
        """Count the end of a call."""
        with self._lock:
            self._place(address).open -= 1
            self._open -= 1

    def may_try(self, address: str, now: float) -> bool:
        """Whether a code from this address is looked at."""
        with self._lock:
            return not _is_full(self._place(address).failures, now - FAILURES_SECONDS)

    def failed(self, address: str, now: float, *, is_sign_in: bool = False) -> bool:
        """Count a request that proved no code, or no sign-in. Returns: whether the log tells it."""
        with self._lock:
            place = self._place(address)
            if _is_full(place.sign_ins if is_sign_in else place.failures, now - FAILURES_SECONDS):
                return False
            if is_sign_in:
                place.sign_ins.append(now)
            else:
                place.failures.append(now)
            return True

    def _place(self, address: str) -> _Caller:
        key = _key(address)
        place = self._places.setdefault(key, _Caller())
        self._places.move_to_end(key)
        if len(self._places) > MOST_PLACES:
            idle = next(each for each, found in self._places.items() if not found.open)
            del self._places[idle]
        return place


def _is_full(times: deque[float], since: float) -> bool:
    return len(times) == times.maxlen and times[0] > since


def _key(address: str) -> str:
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return str(int(parsed) >> 80)
        parsed = parsed.ipv4_mapped
    return str(parsed)
