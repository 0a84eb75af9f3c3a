"""The authority's record of enrolments, one file for each role and name, in its own folder.

    invited ──► asked ──► admitted
                  └─────► declined

A file holds the invitation's one-time code, so only its owner can read it. The certificates
themselves are in `issued/` (`transport/authority.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from umpc.errors import CertificateError
from umpc.transport.files import read_file, unwritten, write_durably

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
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(path, json.dumps(asdict(enrolment), indent=1).encode())
        except OSError as error:
            raise unwritten(path, error) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the record's lock, so that no other process changes it between a look and a change.

        Raises: CertificateError if the system refuses.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise unwritten(self._folder, error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

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
