"""The enrolment volume: notes between containers, and how they wait for each other.

| path below /enrolment | written by | what |
|---|---|---|
| `present/<container>` | all | role and address; locked until its writer ends, in any way |
| `members.json` | coordinator | all members of this run by name, fixed from then on |
| `<name>/request.csr` | that member | its request; the key stays in its own container |
| `<name>/ca.pem`, `<name>/cert.pem` | certificates | the answer |
| `<name>/ready` | node, dealer | it accepts calls |
| `failed/<address>` | any | why it gave up; all others then give up, too |
| `outcome` | coordinator | exit code of the run |

The volume is memory that empties when the last container stops, so no note is of an earlier run.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

BOARD = Path("/enrolment")
SECONDS = 300
"""The time limit of every wait. Failed and killed containers are noticed at once, so this is for
those that hang.
"""
POLL_SECONDS = 0.2


class Failed(Exception):
    """This container cannot go on; the message says what is missing or wrong."""


class OtherFailed(Failed):
    """Another container failed or is gone."""


@dataclass(frozen=True)
class Member:
    """A container in this run. container: its name as docker-compose shows it, for messages."""

    name: str
    role: str
    address: str
    container: str

    def label(self) -> str:
        return (
            self.name
            if self.name == self.container
            else f"{self.name} (container {self.container})"
        )


def put(note: str, content: bytes = b"") -> None:
    """Write a note, whole or not at all."""
    part = BOARD / f".{socket.gethostname()}"
    part.write_bytes(content)
    (BOARD / note).parent.mkdir(exist_ok=True)
    part.replace(BOARD / note)


def has(note: str) -> bool:
    return (BOARD / note).exists()


def send(file: Path, note: str) -> None:
    put(note, file.read_bytes())


def fetch(note: str, file: Path) -> None:
    shutil.copyfile(BOARD / note, file)


def own_address() -> str:
    return socket.gethostbyname(socket.gethostname())


def arrive(role: str):
    """Say that this container runs. Returns: the locked file, to be kept until the end."""
    part = BOARD / f".present-{socket.gethostname()}"
    file = part.open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(f"{role} {own_address()}")
    file.flush()
    (BOARD / "present").mkdir(exist_ok=True)
    part.rename(BOARD / "present" / socket.gethostname())
    return file


def arrivals() -> list[tuple[str, str, bool]]:
    """Return (role, address, still running) of every container that arrived."""
    return [
        (*path.read_text().split(), _is_locked(path))
        for path in sorted((BOARD / "present").iterdir())
    ]


def runs(role: str) -> bool:
    """Return whether a container of this role arrived and has not ended."""
    return any(found == role and running for found, _, running in arrivals())


def _is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def publish(members: Iterable[Member]) -> None:
    put("members.json", json.dumps([asdict(member) for member in members]).encode())


def members() -> list[Member]:
    """Return all members, as the coordinator counted them."""
    wait("the list of members", lambda: [] if has("members.json") else ["coordinator"])
    return _members()


def _members() -> list[Member]:
    return [Member(**entry) for entry in json.loads((BOARD / "members.json").read_bytes())]


def wait(what: str, missing: Callable[[], Iterable[str]]) -> None:
    """Wait until nothing is missing.

    Raises: OtherFailed at once, Failed after SECONDS, with the names that are missing.
    """
    deadline = time.monotonic() + SECONDS
    while names := list(missing()):
        check_others()
        if time.monotonic() > deadline:
            raise Failed(
                f"waited {SECONDS} s in vain for {what} of {', '.join(names)}; see the log there"
            )
        time.sleep(POLL_SECONDS)


def wait_for(what: str, note: str, names: Iterable[str]) -> None:
    """Wait until all of these members have left this note. Raises: as `wait`."""
    wait(what, lambda: [name for name in names if not has(f"{name}/{note}")])


def give_up(reason: str) -> None:
    """Say that this container failed, so that the others end, too."""
    put(f"failed/{own_address()}", reason.encode())


def check_others() -> None:
    """Raise OtherFailed if a container said that it failed, or ended without a word."""
    if has("outcome"):
        raise OtherFailed("the coordinator has ended; see the log there")
    here = arrivals()
    names = {address: f"{role} at {address}" for role, address, _ in here}
    names |= (
        {member.address: member.label() for member in _members()} if has("members.json") else {}
    )
    for note in sorted((BOARD / "failed").glob("*")):
        raise OtherFailed(f"{names[note.name]} failed: {note.read_text()}")
    if gone := [names[address] for _, address, running in here if not running]:
        raise OtherFailed(f"{', '.join(gone)} ended before the study; see the log there")
