"""The enrolment volume: what one container leaves for the others, and how they wait for each other.

| path below /enrolment | written by | what |
|---|---|---|
| `present/<address>` | each node | "I was started" |
| `members.json` | coordinator | name → address of everybody in this run, fixed from then on |
| `<name>/request.csr` | that member | its request; the key stays in its own container |
| `<name>/ca.pem`, `cert.pem` | certificates | the answer |
| `<name>/ready` | node, dealer | it accepts calls |
| `failed/<container>` | anybody | why it gave up: everybody else does then, too |
| `outcome` | coordinator | exit code of the run |

The volume is memory that empties when the last container stops, so nothing here is of an earlier run.
"""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path

BOARD = Path("/enrolment")
SECONDS = 120
"""Deadline of every wait."""
POLL_SECONDS = 0.25


class Failed(Exception):
    """This container cannot go on; the message says what is missing or wrong."""


class OtherFailed(Failed):
    """Another container cannot go on, or is gone."""


def put(name: str, content: bytes = b"") -> None:
    """A note, whole or not at all."""
    path = BOARD / name
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(path.name + f".part-{socket.gethostname()}")
    part.write_bytes(content)
    part.replace(path)


def send(file: Path, name: str) -> None:
    put(name, file.read_bytes())


def fetch(name: str, file: Path) -> None:
    shutil.copyfile(BOARD / name, file)


def has(name: str) -> bool:
    return (BOARD / name).exists()


def wait(what: str, missing: Callable[[], Iterable[str]]) -> None:
    """Until nobody is missing. Raises: OtherFailed at once, Failed after SECONDS naming who is missing."""
    deadline = time.monotonic() + SECONDS
    while names := list(missing()):
        check_others()
        if time.monotonic() > deadline:
            raise Failed(f"waited {SECONDS} s for {what} of {', '.join(names)}, in vain; see the log of that container")
        time.sleep(POLL_SECONDS)


def wait_for(what: str, notes: Iterable[str]) -> None:
    """Until these members' notes are there, as `wait`. notes: "<name>/<note>"."""
    notes = list(notes)
    wait(what, lambda: [note.split("/")[0] for note in notes if not has(note)])


def members() -> dict[str, str]:
    """Name → address of everybody in this run, as the coordinator counted them."""
    wait("the list of members", lambda: [] if has("members.json") else ["coordinator"])
    return json.loads((BOARD / "members.json").read_bytes())


def check_others() -> None:
    """Raises: OtherFailed if a container said that it failed, or went away without a word."""
    for note in sorted((BOARD / "failed").glob("*")):
        raise OtherFailed(f"{note.name} failed: {note.read_text()}")
    if has("members.json"):
        present = {host for service in SERVICES for host in (service, *addresses(service)) if addresses(service)}
        gone = [f"{name} ({host})" for name, host in members().items() if host not in present]
        if gone:
            raise OtherFailed(f"{', '.join(gone)} went away before the study; see the log of that container")


SERVICES = ("certificates", "dealer", "node", "coordinator")


def addresses(service: str) -> list[str]:
    """Of the service's running containers, from the engine's own name server."""
    try:
        return sorted({found[4][0] for found in socket.getaddrinfo(service, None, socket.AF_INET)})
    except OSError:
        return []
