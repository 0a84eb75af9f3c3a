"""People with one value each: expanding keys, dealing, messages a second, and a whole study.

`python -m bench.people 10000` takes another number of people for the whole study. A share of the
AES limit is of the processor's seconds, so other work on the machine does not lower it. The gain of
several cores is of the wall's clock, and needs cores that are free.
"""

from __future__ import annotations

import asyncio
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np

from bench.harness import cores, peak_memory
from bench.limits import aes_blocks_per_second
from bench.table import show
from umpc.api.study import run_now
from umpc.cli.people import make_tokens
from umpc.compute.place import ComputePlace
from umpc.coordinator.client import run_study
from umpc.coordinator.people import count_people, open_people
from umpc.coordinator.studyfile import load_study_file
from umpc.crypto.prg import FixedKeyHash
from umpc.dealer.people import PeopleDealer
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import Deployment, Served, ended_with_us
from umpc.mpc.fss.point import add_up, generate, key_bytes
from umpc.people.device import (
    Device,
    DoorEntry,
    PeopleInvitation,
    Respondent,
    check_invitation,
)
from umpc.people.messages import BOX_BYTES, PLACES_AT_ONCE
from umpc.people.places import read_keys, read_token
from umpc.protocols.people.terms import messages_of
from umpc.study.document import Study
from umpc.transport.identity import load_identity
from umpc.transport.people_door import door
from umpc.ustat.blocks import in_blocks

SMALL, WIDE = 1 << 10, 1 << 17
MILLION = 1_000_000
WIDE_SECONDS = 10
"""Seconds for which keys of many cells are expanded."""
DEALT = 100_000
"""Places of the dealing that is timed."""
PEOPLE = 5_000
"""People of a whole study."""
SENDERS = 4
IDLE_RUNS = 30
SENT = re.compile(r"messages were sent, ([0-9,]+) a second")
NAMES = ("north", "south")
WORK = (
    f"{MILLION:,} people's keys in {SMALL:,} cells",
    f"{DEALT:,} places dealt",
    f"{PEOPLE:,} people, from the last message to the result",
)
BLOCKS_A_CELL = 0.75
"""AES blocks in which a key is expanded, for each cell: D/4 of the tree and D/2 of its leaves."""
COLUMNS = ("", "people", "seconds", "a second", "of the AES limit")


def main(people: int = PEOPLE) -> dict[str, float]:
    """Print all tables. Returns: work of `WORK` → seconds."""
    seconds = expanding(), dealing(), whole_study(people)
    return dict(zip(WORK, seconds, strict=True))


# --- in one process -------------------------------------------------------------------------------


def expanding() -> float:
    """An aggregator's sum after closing, in blocks of places as its disk has them.

    Returns: seconds of a million people in 2^10 cells on all cores.
    """
    rows, found = [], {}
    for cells, used in ((SMALL, 1), (SMALL, cores()), (WIDE, 1), (WIDE, cores())):
        before = aes_blocks_per_second()
        people, seconds, processor = expanded(cells, used)
        limit = (before + aes_blocks_per_second()) / 2  # other work slows both
        share = BLOCKS_A_CELL * cells * people / processor / limit
        name = f"{cells:,} cells, {used} core{'s' if used > 1 else ''}"
        figures = f"{people:,}", f"{seconds:.2f}", f"{people / seconds:,.0f}", f"{share:.0%}"
        rows.append((name, *figures))
        found[f"{cells} cells, {used}"] = seconds * MILLION / people
    show("Keys of people, expanded, rotated and added up", COLUMNS, rows)
    for cells in (SMALL, WIDE):
        gain = found[f"{cells} cells, 1"] / found[f"{cells} cells, {cores()}"]
        print(f"{cells:,} cells: {cores()} cores are {gain:.2f} times as fast as one")
    print(f"memory of this process: {own_memory() / 2**20:.0f} MiB")
    return found[f"{SMALL} cells, {cores()}"]


def expanded(cells: int, used: int) -> tuple[int, float, float]:
    """People whose keys were added up, seconds, and those of the processor. Args: used: cores."""
    count = PLACES_AT_ONCE if cells == SMALL else PLACES_AT_ONCE // 32
    tree_hash = FixedKeyHash(bytes(16))
    rng = np.random.default_rng(cells)
    roots = rng.integers(0, 1 << 63, (2, count, 2), dtype=np.uint64)
    numbers = rng.integers(0, cells, count, dtype=np.uint64)
    keys = generate(cells, numbers, roots, tree_hash)

    def add(_: object) -> None:
        add_up(0, keys, numbers, roots[0], tree_hash)

    # as a node does when it starts: without it, all blocks have one core
    ComputePlace(used).open()
    started = time.perf_counter()
    in_blocks(add, range(2 * used))
    once = (time.perf_counter() - started) / (2 * used)
    times = -(-MILLION // count) if cells == SMALL else max(used, int(WIDE_SECONDS / once))
    started, processor = time.perf_counter(), time.process_time()
    in_blocks(add, range(times))
    return times * count, time.perf_counter() - started, time.process_time() - processor


def dealing() -> float:
    """The dealer's work for `DEALT` places: secrets and keys on disk, and their bytes."""
    with tempfile.TemporaryDirectory(prefix="umpc-bench-") as name:
        folder = Path(name)
        make_tokens(DEALT, folder / "tokens.txt", folder / "people.keys")
        study = load_study_file(study_file(folder, {})).study("coordinator")
        dealer = PeopleDealer(folder / "dealt")
        started = time.perf_counter()
        dealer.open_study(study, read_keys(folder / "people.keys"))
        opened = time.perf_counter() - started
        sent = sum(map(len, dealer.deal(study.hash, NAMES[0], 0)))
        seconds = time.perf_counter() - started
        dealer.close()
    predicted = 32 + DEALT * key_bytes(messages_of(study).cells)
    if sent != predicted:
        raise AssertionError(f"{sent} bytes were dealt, and {predicted} were predicted")
    row = "dealing", f"{DEALT:,}", f"{seconds:.2f}", f"{DEALT / seconds:,.0f}", ""
    show("The dealer", COLUMNS, [row])
    print(f"{opened:.2f} s of them are for secrets; {sent:,} bytes an aggregator, as predicted")
    return seconds


def own_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


# --- real processes -------------------------------------------------------------------------------


def study_file(folder: Path, served: dict[str, Served]) -> Path:
    """A study of two fields of 32 values each."""
    at = {name: each.address for name, each in served.items()}
    now = datetime.now(UTC)
    lines = [
        'name = "bench"\nstatistic = "kendall_tau"\ncolumns = ["x", "y"]\nepsilon = 1',
        'identity = "coordinator"\nprotocol = "people"',
        *(f'[[fields]]\nname = "{each}"\nlower = 0\nupper = 31\nwhole = true' for each in "xy"),
        f'[dealer]\nname = "dealer"\naddress = "{at.get("dealer", "127.0.0.1:1")}"',
        *(
            f'[[aggregators]]\nname = "{name}"\naddress = "{at.get(name, "127.0.0.1:1")}"'
            for name in NAMES
        ),
        f'[people]\nkeys = "people.keys"\nopens = "{now - timedelta(hours=1):%FT%TZ}"',
        f'closes = "{now + timedelta(hours=9):%FT%TZ}"',
    ]
    path = folder / "study.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def whole_study(people: int) -> float:
    """A study from its opening to the result. Returns: seconds after the last message."""
    rows: list[tuple[str, ...]] = []

    @contextmanager
    def timed(name: str, count: int = people) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        rows.append((name, f"{count:,}", f"{seconds:.2f}", f"{count / seconds:,.0f}", ""))

    with tempfile.TemporaryDirectory(prefix="umpc-bench-") as name, fork_server() as popen:
        folder = Path(name)
        deployment = Deployment(folder, popen=popen)
        make_tokens(people + IDLE_RUNS, folder / "tokens.txt", folder / "people.keys")
        with ended_with_us(deployment.processes):
            deployment.start_dealer(people=True)
            for each in NAMES:
                deployment.start_aggregator(each, "1000", delta="1e-3")
            served = deployment.wait_until_ready()
            study = load_study_file(study_file(folder, served)).study("coordinator")
            with timed("opened, keys dealt to both", people + IDLE_RUNS):
                open_study(folder, study, served)
            idle = [asyncio.run(answer_one(folder, people + each)) for each in range(IDLE_RUNS)]
            with timed(f"sent by {SENDERS} processes, with their start"):
                a_second = send_all(folder, people)
            took = f"{people / a_second:.2f}", f"{a_second:,.0f}"
            rows.append((f"sent by {SENDERS} processes", f"{people:,}", *took, ""))
            identity = load_identity(folder / "coordinator", "coordinator")
            started = time.perf_counter()
            with timed("closed, compared, signed, added up", people + IDLE_RUNS):
                counted, listed = run_now(count_people(study, identity))
            with timed("the grid of both aggregators", people + IDLE_RUNS):
                report = run_now(run_study(counted, identity))
            seconds = time.perf_counter() - started
            memory = {each: peak_memory(served[each].process.pid) for each in served}
    assert len(listed) == report.records == people + IDLE_RUNS
    show(f"A study of {messages_of(study).cells:,} cells, all on this machine", COLUMNS, rows)
    shown = ", ".join(f"{each} {size / 2**20:.0f} MiB" for each, size in memory.items())
    print(f"one receipt of an idle aggregator: {1e3 * median(idle):.1f} ms; {shown}")
    print(f"a person sends 2 × {BOX_BYTES} bytes in boxes, and gets 2 × 96 in receipts")
    if report.bytes_online != report.bytes_online_predicted:
        raise AssertionError("the bytes online are not those that were predicted")
    return seconds


def open_study(folder: Path, study: Study, served: dict[str, Served]) -> None:
    """Open the study, and write the invitation."""
    identity = load_identity(folder / "coordinator", "coordinator")
    opened = run_now(open_people(study, lambda: read_keys(folder / "people.keys"), identity))
    first, second = (
        DoorEntry(each.name, served[each.name].door, each.key, each.certificate, each.signature)
        for each in opened
    )
    dealer = DoorEntry("dealer", served["dealer"].door)
    text, authority = study.encode().decode(), identity.ca_pem.decode()
    invitation = PeopleInvitation(text, authority, dealer, (first, second))
    (folder / "invitation.json").write_bytes(invitation.encode())


async def answer_one(folder: Path, place: int) -> float:
    """Seconds in which both aggregators answer one person, whose secret is there already."""
    invited = check_invitation((folder / "invitation.json").read_bytes())
    ca, doors = invited.invitation.ca.encode(), invited.invitation.aggregators
    with (folder / "tokens.txt").open() as tokens:
        seed = next(read_token(line)[1] for at, line in enumerate(tokens) if at == place)
    device = Device(folder / f"{place}.device", invited)
    spent = []

    class Timed:
        def __init__(self, inner: object):
            self.inner = inner

        async def submit(self, study: bytes, boxes: object) -> object:
            started = time.perf_counter()
            answer = await self.inner.submit(study, boxes)  # type: ignore[attr-defined]
            spent.append(time.perf_counter() - started)
            return answer

    entry = invited.invitation.dealer
    async with (
        await door(entry.address, ca, entry.name, "dealer") as dealer,
        await door(doors[0].address, ca, doors[0].name, "node") as first,
        await door(doors[1].address, ca, doors[1].name, "node") as second,
    ):
        await device.send([Respondent(place, seed, 5)], dealer, [Timed(first), Timed(second)])
    device.close()
    return max(spent)


def send_all(folder: Path, people: int) -> float:
    """Send the messages of all people by `SENDERS` processes of the command.

    Returns: messages a second, by the clocks of these processes, each from its first message on.
    """
    tokens = (folder / "tokens.txt").read_text().splitlines()
    running = []
    for number in range(SENDERS):
        own = range(people * number // SENDERS, people * (number + 1) // SENDERS)
        table = "x,y\n" + "".join(f"{place % 32},{place // 3 % 32}\n" for place in own)
        (folder / f"{number}.csv").write_text(table)
        (folder / f"{number}.txt").write_text("".join(f"{tokens[place]}\n" for place in own))
        files = ("csv", "txt", "device", "json")
        given = zip(("--csv", "--tokens", "--device", "--receipts"), files, strict=True)
        words = [each for key, end in given for each in (key, str(folder / f"{number}.{end}"))]
        command = [*Deployment.command, "people", "submit", "--yes"]
        running.append(
            subprocess.Popen(
                [*command, str(folder / "invitation.json"), *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
    found = [SENT.search(each.communicate()[0]) for each in running]
    if not all(found):
        raise AssertionError("a process that sends messages failed")
    return sum(float(each[1].replace(",", "")) for each in found if each)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
