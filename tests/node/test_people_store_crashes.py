"""The disk of an aggregator of people under kill -9, many threads, chance, and 10^5 places."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.crowds import (
    CELLS,
    CLOSES,
    NAMES,
    OPENS,
    Clock,
    Crowd,
    Pair,
    opened,
    store_at,
    whole_way,
)
from umpc.errors import MessageRefused, StudyError, TooFewRecords
from umpc.people import messages

EXPECTED = np.bincount([*CELLS.values()], minlength=16).tolist()

# --- kill -9


def killed(folder: Path, point: str) -> list[str]:
    """Run `whole_way` in a process that is killed at a point. Returns: what it told."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.crowds", str(folder)],
        env=os.environ | {"UMPC_FAILPOINT": f"{point}:kill"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    return child.stdout.splitlines()


@pytest.mark.parametrize(
    "point",
    [
        "people-row-stored",
        "people-receipt-due",
        "people-closed",
        "people-signed",
        "people-part-added",
        "people-added",
    ],
)
def test_a_kill_loses_no_receipt_and_counts_nobody_twice(tmp_path: Path, point: str):
    told: list[str] = []
    whole_way(tmp_path, told.append, some=3)
    told += killed(tmp_path, point)
    # the other aggregator's disk may have been a step behind: both go on from where they stand
    now: list[str] = []
    assert whole_way(tmp_path, now.append) == EXPECTED
    receipts = {line.partition(" ")[2] for line in told}
    listed = {line.removeprefix("listed ") for line in now if line.startswith("listed")}
    assert receipts <= listed and len(listed) == len(CELLS)
    assert {path.suffix for path in tmp_path.rglob("people*")} <= {".sqlite", ".lock", *LOGS}
    assert not list(tmp_path.rglob("*.dealt")), "the dealt keys are gone"


LOGS = (".sqlite-shm", ".sqlite-wal")


@pytest.mark.parametrize("lines", [1, 4, 9, 13])
def test_a_kill_at_any_moment_loses_no_receipt(tmp_path: Path, lines: int):
    program = [sys.executable, "-m", "tests.support.crowds", str(tmp_path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(lines)]
        child.kill()
        told += child.stdout.read().splitlines()
    now: list[str] = []
    assert whole_way(tmp_path, now.append) == EXPECTED
    listed = {line.removeprefix("listed ") for line in now if line.startswith("listed")}
    assert {line.partition(" ")[2] for line in told} <= listed


def test_a_killed_sum_goes_on_where_it_was_stored(tmp_path: Path):
    whole_way(tmp_path, lambda _: None, some=3)
    killed(tmp_path, "people-part-added")
    with closing(sqlite3.connect(tmp_path / NAMES[0] / "people.sqlite")) as db:
        (added,) = db.execute("SELECT added FROM studies").fetchone()
        db.execute("UPDATE studies SET share = ?", (np.full(16, 5, dtype=np.uint64).tobytes(),))
        db.commit()
    assert added == 1
    assert whole_way(tmp_path, lambda _: None) != EXPECTED, "the stored sum counts"


# --- many threads


def test_calls_of_many_threads_share_commits_and_each_row_is_there(tmp_path: Path):
    crowd, clock = Crowd("threads", 160), Clock()
    store = store_at(tmp_path, 0, clock)
    key = opened(store, crowd, 0)
    boxes = [crowd.boxes([key, key], place, [place % 16])[0] for place in range(160)]

    def send(start: int) -> list:
        given = [(place % 160, boxes[place % 160]) for place in range(start, start + 20)]
        return store.submit(crowd.hash, given)

    with ThreadPoolExecutor(16) as threads:
        # each message comes twice, by two threads
        told = list(threads.map(send, range(0, 160, 10)))
    assert all(isinstance(each, bytes) for part in told for each in part)
    clock.now = CLOSES
    store.close_study(crowd.hash)
    assert len(b"".join(store.rows(crowd.hash))) == 160 * messages.ROW_BYTES
    store.close()


class ReadBoxes(list):
    """Boxes that say when they have been opened."""

    def __init__(self, boxes: list):
        super().__init__(boxes)
        self.are_read = threading.Event()

    def __iter__(self):
        yield from super().__iter__()
        self.are_read.set()


def test_a_message_that_was_opened_before_the_study_closed_is_refused_after_it(tmp_path: Path):
    main, crowd = threading.get_ident(), Crowd("closing", 3)

    def now() -> float:
        """The time is over for the thread that closes, which waits for the other one's message."""
        if threading.get_ident() != main:
            return OPENS
        late.are_read.wait()
        return CLOSES

    store = store_at(tmp_path, 0, lambda: OPENS)
    key = opened(store, crowd, 0)
    store.close()
    late = ReadBoxes([])
    late.are_read.set()
    store = store_at(tmp_path, 0, now)
    early, late = (ReadBoxes([(place, crowd.boxes([key], place, [3])[0])]) for place in (0, 1))
    with ThreadPoolExecutor(1) as thread:
        assert isinstance(thread.submit(store.submit, crowd.hash, early).result()[0], bytes)
        told = thread.submit(store.submit, crowd.hash, late)
        store.close_study(crowd.hash)
        (refused,) = told.result()
    assert isinstance(refused, MessageRefused) and "after it was closed" in str(refused)
    assert len(b"".join(store.rows(crowd.hash))) == messages.ROW_BYTES
    store.close()


# --- chance

PLACES = 4


class TwoStores(RuleBasedStateMachine):
    """Messages, restarts, clocks and closings in any order. The first message of a place counts."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.pair = Pair(Path(self.folder.name), Crowd("by chance", PLACES), self.clock).open()
        self.rows: list[dict[int, tuple[int, str]]] = [{}, {}]
        self.receipts: dict[tuple[int, int], bytes] = {}
        self.closed = [False, False]

    def teardown(self):
        crowd, stores = self.pair.crowd, self.pair.stores
        self.clock.now = CLOSES
        for store in stores:
            store.close_study(crowd.hash)
        both = self.rows[0].items() & self.rows[1].items()
        if len(both) < 2:
            with pytest.raises(TooFewRecords):
                self.pair.add_up()
        else:
            cells = [
                (number + messages.offset(crowd.survey, place, crowd.secrets[place])) % 16
                for place, (number, _) in both
            ]
            assert self.pair.add_up() == np.bincount(cells, minlength=16).tolist()
        self.pair.stop()
        self.folder.cleanup()

    @rule(
        place=st.integers(0, PLACES - 1),
        number=st.sampled_from([0, 0, 0, 1, 15]),
        label=st.sampled_from(["", "", "again"]),
        side=st.integers(0, 1),
    )
    def send(self, place: int, number: int, label: str, side: int):
        crowd = self.pair.crowd
        box = crowd.boxes(self.pair.keys, place, [number, number], label)[side]
        try:
            (found,) = self.pair.stores[side].submit(crowd.hash, [(place, box)])
        except MessageRefused as refused:
            assert self.closed[side], refused
            return
        assert not self.closed[side]
        is_time = OPENS <= self.clock.now < CLOSES
        former = self.rows[side].get(place)
        if former == (number, label) or (former is None and is_time):
            assert isinstance(found, bytes)
            self.rows[side][place] = (number, label)
            assert self.receipts.setdefault((side, place), found[:32]) == found[:32]
        else:
            assert isinstance(found, MessageRefused)

    @rule()
    def restart(self):
        self.pair.restart()

    @rule(at=st.sampled_from([OPENS - 1, OPENS, CLOSES - 1, CLOSES]))
    def tick(self, at: float):
        self.clock.now = at

    @rule(side=st.integers(0, 1))
    def close(self, side: int):
        may = self.closed[side] or self.clock.now >= CLOSES or len(self.rows[side]) == PLACES
        try:
            self.pair.stores[side].close_study(self.pair.crowd.hash)
        except StudyError:
            assert not may
        else:
            assert may
            self.closed[side] = True

    @precondition(lambda self: any(self.closed))
    @invariant()
    def lists_have_every_receipt(self):
        for side, store in enumerate(self.pair.stores):
            if self.closed[side]:
                rows = b"".join(store.rows(self.pair.crowd.hash))
                told = {
                    place: receipt for (at, place), receipt in self.receipts.items() if at == side
                }
                assert rows == b"".join(messages.row(*each) for each in sorted(told.items()))


TwoStores.TestCase.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, derandomize=True
)
TestTwoStores = TwoStores.TestCase


# --- 10^5 people

MANY = """
import resource, sys
from pathlib import Path
from tests.node.test_people_store_crashes import many_people
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
many_people(Path(sys.argv[1]), int(sys.argv[2]))
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
WIDEST = 31
"""x and y have 32 values each: D = 2^10."""


def many_people(folder: Path, count: int) -> None:
    """Two stores in which all people but one have already sent, up to the histogram."""
    clock = Clock()
    pair = Pair(folder, Crowd("many", count, widest=WIDEST), clock).open()
    pair.send(count - 1, 5)
    pair.stop()
    cells = np.arange(count) % 1000
    offsets = messages.offsets(pair.crowd.survey, 0, pair.crowd.secrets)
    d = np.uint64(pair.crowd.survey.cells)
    numbers = (cells.astype(np.uint64) + d - offsets) % d
    for name in NAMES:
        # making 10^5 boxes takes a minute: rows as the store writes them
        with closing(sqlite3.connect(folder / name / "people.sqlite")) as db:
            rows = ((1, p, n, p.to_bytes(32, "big")) for p, n in enumerate(numbers[:-1].tolist()))
            db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
            db.commit()
    pair.start()
    clock.now = CLOSES
    pair.close()
    expected = np.bincount([*cells[:-1], 5], minlength=1024).tolist()
    assert pair.add_up() == expected
    pair.stop()


def test_a_hundred_thousand_people_take_little_memory(tmp_path: Path):
    command = [sys.executable, "-c", MANY, str(tmp_path), "100000"]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    before, peak = map(int, child.stdout.split())
    # of which the crowd itself, with its secrets and tokens, takes 60 MB
    assert peak - before < 300 * 1024, "KiB"
