"""The authority's record of enrolments, one file for each role and name, in its own folder.

    invited ──► asked ──► admitted
                  └─────► declined

A file holds the invitation's one-time code, so only its owner can read it. The certificates
themselves are in `issued/` (`transport/authority.py`).

The requests that reach the authority: which ones are recorded, and which one is answered.

    invited ──► asked ──► admitted
                  └─────► declined

*Who may ask over the network.* Only a request that proves the one-time code of an invitation is
recorded. The first one binds the code to its key. A request of another key with the same code is
refused, and the record keeps when it came, so that the person who approves is warned. A request
that came in time may wait for its decision longer than the code counts. After the decision the code
is forgotten: only the very request that was decided on is answered again.

Nothing here needs the authority's key.

The members of a consortium, as its authority tells them: name, role and address of each.

An address is the member's own word. It decides nothing: TLS proves the name and the role of
whoever answers there.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from umpc.enrolment.texts import Request, parse_time
from umpc.errors import CertificateError, ConfigError
from umpc.transport.authority import Issued
from umpc.transport.certificates import check_name, clock, names_of
from umpc.transport.files import flocked, read_file, write_durably, writing
from umpc.transport.identity import load_revoked

INVITED = "invited"
ASKED = "asked"
ADMITTED = "admitted"
DECLINED = "declined"
STATES = (INVITED, ASKED, ADMITTED, DECLINED)
HOW = "restore the authority's folder from a backup, or remove the file and invite again"


@dataclass(frozen=True)
class Enrolment:
    """One process on its way into the consortium.

    code: of its invitation, hexadecimal; empty without one, and after its certificate was issued.
    until: the invitation's end. request: the text of its request. proven: the request proved the
    code. address: where others reach the process, as the request says; a request that says nothing
    keeps the former one. listed: the address of the former admission. admission: the text of the
    answer. at: the last change, in UTC. rival: when a request of another key proved the same code.
    online: the request came over the network, so the site fetches its answer itself.
    """

    name: str
    role: str
    state: str
    at: str
    code: str = field(default="", repr=False)
    until: str = ""
    request: str = ""
    proven: bool = False
    address: str = ""
    admission: str = ""
    rival: str = ""
    online: bool = False
    listed: str = ""

    @property
    def member_address(self) -> str:
        """The address in the list of members: that of the last admission, also while one waits."""
        return self.address if self.state == ADMITTED else self.listed

    def changed(self, **changes: object) -> Enrolment:
        """Return this enrolment with other values."""
        return replace(self, **changes)  # type: ignore[arg-type]


class Register:
    """The record in one folder, which need not exist yet."""

    def __init__(self, folder: Path):
        self._folder = folder

    def find(self, name: str, role: str) -> Enrolment | None:
        """Return the enrolment of a process, or None. Raises: CertificateError if damaged."""
        path = self._path(name, role)
        return _read(path) if path.exists() else None

    def put(self, enrolment: Enrolment) -> None:
        """Write an enrolment, on disk when this returns. Raises: CertificateError."""
        path = self._path(enrolment.name, enrolment.role)
        with writing(path):
            write_durably(path, json.dumps(asdict(enrolment), indent=1).encode())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the record's lock, so that no other process changes it between a look and a change.

        Raises: CertificateError if the system refuses.
        """
        lock = self._folder / "lock"
        with writing(lock), flocked(lock):
            yield

    def all(self) -> Iterator[Enrolment]:
        """Return every enrolment, in the order of role and name. Raises: CertificateError."""
        for path in sorted(self._folder.glob("*.json")):
            yield _read(path)

    def _path(self, name: str, role: str) -> Path:
        return self._folder / f"{role}.{name}.json"


def _read(path: Path) -> Enrolment:
    content = read_file(path, HOW)
    try:
        entry = Enrolment(**json.loads(content))
        if entry.state not in STATES or path.name != f"{entry.role}.{entry.name}.json":
            raise ValueError
        return entry
    except (ValueError, TypeError):
        raise CertificateError(f"{path} is not the record of an enrolment: {HOW}") from None


# --- requests received ----------------------------------------------------------------------------


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
        return self._now().isoformat(timespec="seconds")


def _unproven(name: str, role: str) -> CertificateError:
    return CertificateError(
        f"the request of {role} {name!r} does not prove the code of an invitation that "
        "counts: invite the site again, and let it join with the new invitation",
        culprit=name,
    )


# --- members --------------------------------------------------------------------------------------


MOST_MEMBERS = 10_000
ADDRESS = re.compile(r"[!#-\[\]-~]{0,255}")
"""Printable ASCII without the two characters that end or escape a text in TOML."""


@dataclass(frozen=True)
class ConsortiumMember:
    """A process with a certificate that counts. address: HOST:PORT, or "" if it gave none."""

    name: str
    role: str
    address: str = ""


def members_of(folder: Path, now: datetime | None = None) -> list[ConsortiumMember]:
    """Return the members of an authority in the order of role and name. Needs no key of it.

    Raises: CertificateError if a file of the authority is damaged.
    """
    at = now or clock()
    ca_pem = read_file(folder / "ca.pem", "restore the authority's folder from a backup")
    revoked = load_revoked(folder / "crl.pem", ca_pem)
    valid = {
        names_of(cert)
        for cert in Issued(folder / "issued").all()
        if cert.not_valid_after_utc > at
        and not (revoked is not None and cert.serial_number in revoked)
    }
    addresses = {
        (entry.name, entry.role): entry.member_address
        for entry in Register(folder / "enrolments").all()
    }
    ordered = sorted(valid, key=lambda names: (names[1], names[0]))
    return [ConsortiumMember(*names, addresses.get(names, "")) for names in ordered]


def parse_members(found: object) -> list[ConsortiumMember]:
    """Return the members that an authority sent. Raises: CertificateError."""
    try:
        if not isinstance(found, list) or len(found) > MOST_MEMBERS:
            raise ValueError
        return [_parse(each) for each in found]
    except (ValueError, TypeError, AttributeError, ConfigError):
        raise CertificateError(
            "the authority's list of members is malformed: ask the authority for its version of "
            "umpc"
        ) from None


def _parse(found: Mapping[str, object]) -> ConsortiumMember:
    member = ConsortiumMember(**{key: str(value) for key, value in found.items()})
    check_name(member.name, member.role)
    if not ADDRESS.fullmatch(member.address):
        raise ValueError
    return member


def to_toml(members: Iterable[ConsortiumMember], at: datetime) -> str:
    """Return the members as a study file names them. The rest is a comment.

    A hub is written as NAME@HOST:PORT, which every option --hub takes.
    """
    return "\n".join([f"# Members of the consortium, told at {at:%F %T} UTC.", *_lines(members)])


def _lines(members: Iterable[ConsortiumMember]) -> Iterator[str]:
    tables = {"node": "[[nodes]]", "dealer": "[dealer]", "shuffler": "[[shufflers]]"}
    for member in members:
        table, address = tables.get(member.role), member.address
        if not ADDRESS.fullmatch(address):
            table, address = None, "an unusable address"
        elif member.role == "hub" and address:
            address = f"{member.name}@{address}"
        if table is None or not address:
            yield f"# {member.role} {member.name!r}, {address or 'without an address'}"
            continue
        if member.role == "dealer":
            del tables["dealer"]  # a study has at most one
        yield f'{table}\nname = "{member.name}"\naddress = "{address}"'
    yield ""
