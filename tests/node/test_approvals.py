"""umpc.node.approvals: pending studies and decisions, in two processes and across a crash."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.studies import make_study
from umpc.errors import ApprovalError, ApprovalPending, PolicyRefused
from umpc.node import approvals as module
from umpc.node.approvals import ACCEPTED, PENDING, REJECTED, Approvals, approvals_beside
from umpc.protocols.registry import decode_study
from umpc.study.document import Study
from umpc.study.parts import Participant

STUDY = make_study(name="first")
PREFIX = STUDY.hash.hex()[:12]


def named(name: str) -> Study:
    return make_study(name=name)


@pytest.fixture
def file(path: Path) -> Path:
    return approvals_beside(path)


@pytest.fixture
def approvals(file) -> Approvals:
    times = iter(range(10**6))
    return Approvals(file, clock=lambda: f"time {next(times)}")


def ask(approvals: Approvals, study: Study = STUDY) -> None:
    with pytest.raises(ApprovalPending):
        approvals.require(study, "north")


def states(approvals: Approvals) -> dict[str, str]:
    return {entry.name: entry.state for entry in approvals.entries()}


def test_an_unknown_study_waits_and_is_kept_whole(approvals):
    with pytest.raises(ApprovalPending) as caught:
        approvals.require(STUDY, "north")
    digits = STUDY.hash.hex()[:16]
    assert caught.value.message == (
        f"north: the study of hash {digits}… waits for approval by its administrator; "
        "ask again later"
    )
    assert digits in caught.value.detail and caught.value.culprit == "north"
    (entry,) = approvals.entries()
    assert (entry.hash, entry.state, entry.asked, entry.decided) == (
        STUDY.hash.hex(),
        PENDING,
        "time 0",
        "",
    )
    assert (entry.coordinator, entry.name, entry.statistic, entry.epsilon) == (
        "coordinator",
        "first",
        "custom",
        "1",
    )
    assert decode_study(entry.document) == STUDY


def test_asked_again_it_waits_once(approvals):
    ask(approvals)
    ask(approvals)
    assert [entry.asked for entry in approvals.entries()] == ["time 0"]


def test_an_accepted_study_runs_and_no_other(approvals):
    ask(approvals)
    assert approvals.decide(PREFIX, ACCEPTED).decided == "time 1"
    approvals.require(STUDY, "north")
    ask(approvals, named("second"))


def test_it_is_the_same_study_at_other_addresses(approvals):
    ask(approvals)
    approvals.decide(PREFIX, ACCEPTED)
    moved = make_study(name="first", dealer=Participant("dealer", "elsewhere:1"))
    approvals.require(moved, "north")


def test_a_rejected_study_is_refused_with_the_reason_even_without_the_rule(approvals):
    ask(approvals)
    approvals.decide(PREFIX, REJECTED, "no ethics board")
    for approval in (True, False):
        with pytest.raises(PolicyRefused) as caught:
            approvals.require(STUDY, "north", approval=approval)
        assert caught.value.message == (
            "north's administrator rejected this study (approval under [policy]): no ethics board"
        )


def test_a_decision_can_be_changed(approvals):
    ask(approvals)
    approvals.decide(PREFIX, REJECTED, "no")
    assert approvals.decide(PREFIX, ACCEPTED).reason == ""
    approvals.require(STUDY, "north")
    approvals.decide(PREFIX, REJECTED, "after all not")
    with pytest.raises(PolicyRefused, match="after all not"):
        approvals.require(STUDY, "north")


def test_without_the_rule_nothing_is_kept_and_no_file_is_made(approvals, file):
    approvals.require(STUDY, "north", approval=False)
    assert not file.exists() and approvals.entries() == [] and not file.exists()
    ask(approvals)
    approvals.require(STUDY, "north", approval=False)


def test_the_file_is_its_owners_only_whatever_the_umask(approvals, file):
    before = os.umask(0)
    try:
        ask(approvals)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_it_outlives_the_process(approvals, file):
    ask(approvals)
    Approvals(file).decide(PREFIX, ACCEPTED)
    Approvals(file).require(STUDY, "north")


# --- bounds -----------------------------------------------------------------------------------


def test_the_oldest_pending_study_makes_room_and_decided_ones_stay(approvals, limit):
    limit(module, MAX_PENDING=3)
    ask(approvals)
    approvals.decide(PREFIX, ACCEPTED)
    for number in range(5):
        ask(approvals, named(f"s{number}"))
    assert states(approvals) == {"first": ACCEPTED, "s2": PENDING, "s3": PENDING, "s4": PENDING}
    ask(approvals, named("s0"))
    assert list(states(approvals)) == ["first", "s3", "s4", "s0"]


def test_large_studies_make_room_too(approvals, limit):
    size = len(named("s0").encode())
    limit(module, MAX_PENDING_BYTES=2 * size)
    for number in range(4):
        ask(approvals, named(f"s{number}"))
    assert list(states(approvals)) == ["s2", "s3"]


def test_names_from_outside_are_one_printable_line(approvals):
    ask(approvals, named("evil\n\x1b[2J\u202e" + "w" * 10**4))
    (entry,) = approvals.entries()
    assert entry.name.isprintable() and len(entry.name) <= module.MAX_REASON


# --- prefixes ---------------------------------------------------------------------------------


def test_a_prefix_that_several_studies_share_is_refused_and_they_are_named(approvals):
    studies = [named(f"s{number}") for number in range(17)]
    for study in studies:
        ask(approvals, study)
    hashes = [study.hash.hex() for study in studies]
    digit = max("0123456789abcdef", key=lambda d: sum(h.startswith(d) for h in hashes))
    shared = [h for h in hashes if h.startswith(digit)]
    with pytest.raises(ApprovalError) as caught:
        approvals.decide(digit, ACCEPTED)
    assert (
        f"{len(shared)} studies fit: " in caught.value.message
        and "Give more digits" in caught.value.message
    )
    assert all(h[:16] in caught.value.message for h in shared[: module.LISTED])
    assert set(states(approvals).values()) == {PENDING}
    assert approvals.find(shared[0].upper()).hash == shared[0]


@pytest.mark.parametrize("prefix", ["", "zz", "%", "_", "0" * 65, "' OR 1=1 --"])
def test_a_prefix_that_no_study_has_is_refused(approvals, prefix):
    ask(approvals)
    with pytest.raises(ApprovalError, match="there is none"):
        approvals.find(prefix)


# --- two processes, crashes, damage -----------------------------------------------------------


def test_a_decision_waits_for_the_nodes_transaction(approvals, file, limit):
    ask(approvals)
    with sqlite3.connect(file, isolation_level=None) as other, ThreadPoolExecutor() as pool:
        other.execute("BEGIN IMMEDIATE")
        decided = pool.submit(approvals.decide, PREFIX, ACCEPTED)
        with pytest.raises(TimeoutError):
            decided.result(timeout=0.3)
        other.execute("COMMIT")
        assert decided.result(timeout=10).state == ACCEPTED
    limit(module, LOCK_SECONDS=0.1)
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ApprovalError) as caught:
            approvals.require(STUDY, "north")
        assert "locked" in caught.value.detail


ASKER = """
import sys
from pathlib import Path
from umpc.errors import ApprovalPending
from umpc.node.approvals import Approvals
from umpc.protocols.registry import decode_study
approvals = Approvals(Path(sys.argv[1]))
for line in sys.stdin.buffer:
    try:
        approvals.require(decode_study(line.rstrip(b"\\n")), "north")
    except ApprovalPending:
        pass
    print("asked", flush=True)
"""


def test_a_node_asks_while_another_process_decides_and_nothing_is_lost(approvals, file):
    studies = [named(f"s{number}") for number in range(60)]
    documents = b"".join(study.encode() + b"\n" for study in studies)
    command = [sys.executable, "-c", ASKER, str(file)]
    askers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    ]
    for asker in askers:
        asker.stdin.write(documents)
        asker.stdin.close()
    accepted = 0
    while accepted < len(studies):
        assert all(asker.poll() in (None, 0) for asker in askers)
        for entry in approvals.entries():
            if entry.state == PENDING:
                approvals.decide(entry.hash, ACCEPTED)
                accepted += 1
    for asker in askers:
        assert asker.stdout.read() == b"asked\n" * len(studies) and asker.wait(timeout=60) == 0
        asker.stdout.close()
    assert states(approvals) == {study.name: ACCEPTED for study in studies}


KILLED = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size=1")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE studies SET state = 'accepted'")
db.execute("CREATE TABLE waste(x)")
db.executemany("INSERT INTO waste VALUES (?)", [("w" * 1000,)] * 5000)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_in_a_transaction_decides_nothing(approvals, file):
    ask(approvals)
    size = file.stat().st_size
    ended = subprocess.run([sys.executable, "-c", KILLED, str(file)])
    assert ended.returncode == -signal.SIGKILL and file.stat().st_size > size
    ask(approvals)
    assert states(approvals) == {"first": PENDING}


@pytest.mark.parametrize(
    "content",
    [b"no database, but as long as a header\n" * 99, b"SQLite format 3\0" + b"\xff" * 999],
)
def test_a_damaged_file_refuses_every_study(approvals, file, content):
    file.write_bytes(content)
    for approval in (True, False):
        with pytest.raises(
            ApprovalError, match="a readable and writable file was expected"
        ) as caught:
            approvals.require(STUDY, "north", approval=approval)
        assert "DatabaseError" in caught.value.detail or "OperationalError" in caught.value.detail
    assert file.read_bytes() == content


def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(ApprovalError, match="the system refused"):
        Approvals(tmp_path / "absent" / "x.approvals").require(STUDY, "north")


@pytest.mark.parametrize(
    ("column", "value"), [("hash", "x'00'"), ("name", "x'00'"), ("document", 5)]
)
def test_a_value_of_another_type_is_told_in_one_line(tmp_path, column, value):
    path = tmp_path / "approvals"
    with pytest.raises(ApprovalPending):
        Approvals(path).require(STUDY, "north")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"UPDATE studies SET {column} = {value}")
    with pytest.raises(ApprovalError, match="a value of another type came"):
        Approvals(path).entries()
