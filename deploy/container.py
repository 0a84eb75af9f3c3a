"""The programs of a container: certificates, hub, dealer, node and coordinator.

`container.py ROLE` types what that role's administrator would type, command by command. Only the
waiting for each other is automatic (board.py). No container is told the number of nodes. The
engine's name server knows all addresses of the service `node`, and the coordinator, which starts
last, asks it once.

All containers stay until the coordinator has ended. They end with 0 if and only if the study did.

UMPC_HUB, which docker-compose.hub.yml sets, lets all other members dial a hub; then nobody else
listens. UMPC_EPSILON, UMPC_EDGES and UMPC_FORMAT (table or json) change the study and how its
result is printed; `make compose-test` uses them.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import board
from board import Failed, Member, OtherFailed

SITE = Path("/site")
AUTHORITY = Path("/authority")
PORT = 7100
LISTENS = f'listen = "0.0.0.0:{PORT}"'
"""The line of node.toml of a node that listens."""
STATISTIC = "kendall_tau"
EPSILON = os.environ.get("UMPC_EPSILON", "1")
"""The study's epsilon, and every node's budget."""
EDGES = os.environ.get("UMPC_EDGES", "2n")
HAS_HUB = bool(os.environ.get("UMPC_HUB"))
"""Whether all other members dial a hub."""
FORMAT = os.environ.get("UMPC_FORMAT", "table")
"""How the coordinator prints the result: table or json."""
END_SECONDS = 10
"""The time within which a member must end after the coordinator has."""
LINGER_SECONDS = 2
"""The engine must see the coordinator's container end before any other."""


# --- the roles


def certificates() -> int:
    """Be the authority: sign every member's request, for its expected name and role."""
    if not (AUTHORITY / "ca.pem").exists():
        umpc("ca", "init", str(AUTHORITY))
    asking = [member for member in board.members() if member.role != "certificates"]
    for member in asking:
        board.wait_for("a request", "request.csr", [member.name])
        request, signed = SITE / f"{member.name}.csr", SITE / member.name
        board.fetch(f"{member.name}/request.csr", request)
        expected = ["--name", member.name, "--role", member.role]
        umpc(
            "ca",
            "sign",
            "--authority",
            str(AUTHORITY),
            str(request),
            *expected,
            "--out",
            str(signed / "cert.pem"),
        )
        for file in ("ca.pem", "cert.pem"):
            board.send(signed / file, f"{member.name}/{file}")
    say(f"signed {len(asking)} certificates")
    return 0


def hub() -> int:
    """Relay sealed envelopes between the other members, until the coordinator has ended."""
    me = myself()
    place = ["--identity", str(enrol(me)), "--listen", f"0.0.0.0:{PORT}"]
    return serve(me, "hub", "start", *place, counts_studies=False)


def dealer() -> int:
    """Deal correlated randomness, without any data."""
    me = myself()
    place = ["--hub", hub_place()] if HAS_HUB else ["--listen", f"0.0.0.0:{PORT}"]
    return serve(me, "dealer", "start", "--identity", str(enrol(me)), *place)


def node() -> int:
    """Be a site with its own rows of the demo's table, its own key, and its own ledger."""
    me = myself()
    names = [member.name for member in board.members() if member.role == "node"]
    table = own_rows(names.index(me.name), len(names))
    config = SITE / "node.toml"
    name, _, address = hub_place().partition("@")
    place = f'hub = {{name = "{name}", address = "{address}"}}' if HAS_HUB else LISTENS
    config.write_text(
        f'name = "{me.name}"\n{place}\nidentity = "{enrol(me)}"\n\n'
        f'[data]\npath = "{table}"\ndelimiter = ","\n\n[budget]\nepsilon = "{EPSILON}"\n'
    )
    return serve(me, "node", "start", "--config", str(config))


def coordinator() -> int:
    """Count the members, wait until they serve, and run the study."""
    board.publish(count_members())
    enrol(myself())
    servers = [member for member in board.members() if member.role in ("dealer", "node")]
    file = write_study(servers)
    board.wait_for("readiness", "ready", [member.name for member in servers])
    say(f"$ umpc study run {file}")
    command = ["umpc", "study", "run", str(file), "--format", FORMAT]
    return subprocess.run(command).returncode


# --- their steps


def hub_place() -> str:
    """Return NAME@HOST:PORT of the hub; empty where there is none."""
    found = [f"{each.name}@{each.address}:{PORT}" for each in board.members() if each.role == "hub"]
    return "".join(found)


def count_members() -> list[Member]:
    """Return all started containers, including all nodes.

    Raises: Failed if a container is gone or does not arrive.
    """
    found = {role: addresses(role) for role in ROLES}
    everywhere = {address for here in found.values() for address in here}
    board.wait(
        "the arrival", lambda: sorted(everywhere - {address for _, address, _ in board.arrivals()})
    )
    board.check_others()
    counted = [Member(role, role, found[role][0], role) for role in ROLES if role != "node"]
    nodes = sorted(
        (number(container), address, container) for address, container in named(found["node"])
    )
    refuse_gaps([number for number, _, _ in nodes])
    counted += [
        Member(f"node-{i}", "node", at, container)
        for i, (_, at, container) in enumerate(nodes, start=1)
    ]
    say(f"members: {', '.join(f'{member.name} at {member.address}' for member in counted)}")
    return counted


def refuse_gaps(numbers: list[int]) -> None:
    """Refuse a gap in the nodes' numbers: a node was killed before it arrived. Raises: Failed."""
    gap = sorted(set(range(1, max(numbers) + 1)) - set(numbers))
    if gap:
        raise Failed(
            f"node containers {', '.join(map(str, numbers))} run, "
            f"{', '.join(map(str, gap))} does not; "
            "see the log there, then `docker-compose down` and up again"
        )


def addresses(service: str) -> list[str]:
    """Return the addresses of all running containers of a service."""
    try:
        return socket.gethostbyname_ex(service)[2]
    except OSError:
        raise Failed(
            f"no container of the service {service} is running; see the log there"
        ) from None


def named(addresses: list[str]) -> list[tuple[str, str]]:
    """Return each address with its container's name, where the engine knows it."""
    return [
        (address, socket.getnameinfo((address, 0), 0)[0].split(".")[0]) for address in addresses
    ]


def number(container: str) -> int:
    """Return 3 for `project_node_3` and `project-node-3`, so that it becomes node-3."""
    found = re.search(r"[_-](\d+)$", container)
    return int(found[1]) if found else 0


def myself() -> Member:
    here = board.own_address()
    for member in board.members():
        if member.address == here:
            return member
    raise Failed(
        f"the coordinator did not count this container, at {here}; run `docker-compose up` again"
    )


def enrol(me: Member) -> Path:
    """Make a key here, send a request to the authority, and fetch the certificate.

    Returns: the folder with all three.
    """
    folder = SITE / me.name
    umpc("ca", "request", "--name", me.name, "--role", me.role, str(folder))
    board.send(folder / "request.csr", f"{me.name}/request.csr")
    board.wait_for("the certificate", "cert.pem", [me.name])
    for file in ("ca.pem", "cert.pem"):
        board.fetch(f"{me.name}/{file}", folder / file)
    return folder


def write_study(servers: list[Member]) -> Path:
    from umpc.cli.table import breast_cancer
    from umpc.coordinator.studyfile_text import field_entry, write_study_file

    table = breast_cancer(None)
    dialled = f"hub:{hub_place()}" if HAS_HUB else ""
    at = {member.name: dialled or f"{member.address}:{PORT}" for member in servers}
    entries = {
        "name": "demo",
        "statistic": STATISTIC,
        "columns": table.columns,
        # Bounds and resolution: in a real study these are public, and agreed beforehand.
        "fields": [field_entry(field) for field in table.fields()],
        "epsilon": EPSILON,
        "edges": EDGES,
        "identity": "coordinator",
        "dealer": {"name": "dealer", "address": at.pop("dealer")},
        "nodes": [{"name": name, "address": address} for name, address in at.items()],
    }
    return write_study_file(SITE, entries)


def own_rows(index: int, nodes: int) -> Path:
    """Write this node's consecutive rows of the demo's table as a CSV file."""
    from umpc.cli.table import breast_cancer

    return breast_cancer(None).part(index, nodes, SITE / "table.csv")


def serve(me: Member, *command: str, counts_studies: bool = True) -> int:
    """Run a process that serves one study; end it if the coordinator has ended before it.

    Args: counts_studies: it ends by itself after the study, which a hub does not.
    """
    whole = ["umpc", *command, *(["--studies", "1"] if counts_studies else [])]
    say(f"$ {' '.join(whole)}")
    process = subprocess.Popen(whole, stdout=subprocess.PIPE, text=True)
    try:
        if not (line := process.stdout.readline()).startswith("ready: "):
            raise Failed(
                f"`umpc {command[0]} start` ended with exit code {process.wait()}; "
                "its reason is above"
            )
        say(line.rstrip())
        board.put(f"{me.name}/ready")
        while process.poll() is None and board.runs("coordinator"):
            time.sleep(board.POLL_SECONDS)
        if not counts_studies:
            time.sleep(LINGER_SECONDS)  # the members take their leave
            process.terminate()
        return process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        say("the coordinator has ended, and no study came here to its end")
        return 0 if outcome() == 0 else 1
    finally:
        process.terminate()
        process.wait()


def umpc(*arguments: str) -> None:
    """Run one command. Raises: Failed; the command's own message is in the log above."""
    say(f"$ umpc {' '.join(arguments)}")
    done = subprocess.run(["umpc", *arguments], stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failed(
            f"`umpc {' '.join(arguments[:2])}` ended with exit code {done.returncode}; "
            "its reason is above"
        )


# --- beginning and end


def main(role: str) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: stopped(role))
    lock = board.arrive(role)
    try:
        code = ROLES[role]()
    except Failed as error:
        code = 1
        say(f"error: {error}")
        if not isinstance(error, OtherFailed):
            board.give_up(str(error))
    if role == "coordinator":
        board.put("outcome", str(code).encode())
    else:
        code = stay() or code
    lock.close()
    return code


def stopped(role: str) -> None:
    """Handle SIGTERM. Before the study's end the coordinator names the cause."""
    if board.has("outcome"):
        sys.exit(0 if outcome() == 0 else 1)
    try:
        if role == "coordinator":
            board.check_others()
    except OtherFailed as error:
        say(f"error: {error}")
    sys.exit(128 + signal.SIGTERM)


def stay() -> int:
    """Wait until the coordinator has ended. Returns: 0 if its study succeeded.

    A study may take any time. Whoever ended before it would end the containers of all others.
    """
    while board.runs("coordinator"):
        time.sleep(board.POLL_SECONDS)
    time.sleep(LINGER_SECONDS)
    return 0 if outcome() == 0 else 1


def outcome() -> int:
    return int((board.BOARD / "outcome").read_text()) if board.has("outcome") else 1


def say(line: str) -> None:
    print(line, flush=True)


ROLES = {"certificates": certificates, "dealer": dealer, "node": node, "coordinator": coordinator}
"""The members of every run, by their services' names."""
if HAS_HUB:
    ROLES["hub"] = hub

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
