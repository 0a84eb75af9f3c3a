"""The order of system calls: the charge is on two disks before the share's first byte is sent.

Where strace is missing, `test_ledger_crash.py` still stops a node between charge and send, and
checks that nothing left.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from umpc.deployment.processes import UMPC
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

SHARE_BYTES = 32 + 12 + 9 + 5 + 22
"""The least bytes of a share on the wire: the attempt, three sums of 4 bytes, the frame of HTTP/2,
gRPC's prefix, and the record of TLS 1.3.
"""
CALLS = "fsync,fdatasync,rename,sendmsg,sendto,write,writev"
LINE = re.compile(
    r"(?P<pid>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<call>\w+)\()(?P<rest>.*)"
)


def can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    return (
        subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
    )


@dataclass
class Call:
    """One system call: the lines of the trace at which it began and returned."""

    name: str
    text: str
    began: int
    ended: int = -1
    result: int = -1


def calls_of(trace: str) -> list[Call]:
    """Return the calls in the order of their beginnings; interrupted calls are joined again."""
    calls, open_calls = [], {}
    for number, line in enumerate(trace.splitlines()):
        found = LINE.fullmatch(line)
        if not found:
            continue
        if found["call"]:
            open_calls[found["pid"]] = Call(found["call"], found["rest"], number)
            calls.append(open_calls[found["pid"]])
        if result := re.search(r"\) += (-?\d+)", found["rest"]):
            call = open_calls[found["pid"]]
            call.ended, call.result = number, int(result[1])
    return calls


def one(calls: list[Call], name: str, text: str, after: int) -> Call:
    """Return the first such call that began after a line, and succeeded."""
    return next(
        c for c in calls if c.name == name and text in c.text and c.began > after and c.result >= 0
    )


def end_traced(strace: subprocess.Popen) -> None:
    """End the traced process, and so strace once its trace is complete.

    If strace ended first, the trace would lack calls.
    """
    deadline = time.monotonic() + 10
    (child,) = Path(f"/proc/{strace.pid}/task/{strace.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGTERM)
    strace.wait(deadline - time.monotonic())


def the_charge_is_on_disk_before_the_share_is_sent(lab, tmp_path):
    """Find a message that can hold the share only after the charge is on disk.

    TLS hides content but not length. The node's other later message, the stream's end, is shorter.
    A share that left too early would therefore be missed here.
    """
    here = lab(1)
    path, trace = here.folder / "node-1-ledger.sqlite", tmp_path / "trace"
    here.table("node-1").write_text("age,balance\n1,2\n2,3\n3,5\n5,4\n")
    here.deployment.command = (
        "strace",
        "-f",
        "-yy",
        "-s",
        "200",
        "-o",
        str(trace),
        "-e",
        f"trace={CALLS}",
        *UMPC,
    )
    here.deployment.start_node("node-1", here.table("node-1"), "10")
    here.served.update(here.deployment.wait_until_ready())
    outcome = here.run(statistic="kendall_tau_b", noise="distributed", max_colluding=0)
    assert outcome.code == 0, outcome.error
    end_traced(here.deployment.processes[-1])
    rows = {row.kind: row.seq for row in read_beside(Place.of(path)).rows}
    calls = calls_of(trace.read_text())

    def anchored(row: int) -> tuple[Call, Call]:
        """Return the anchor's calls for a row: write, rename, and sync of the folder."""
        written = one(calls, "write", f"umpc anchor 1: row {row},", 0)
        synced = one(calls, "fsync", f"{path}.anchor.new>", written.began)
        moved = one(calls, "rename", f'"{path}.anchor"', synced.ended)
        return written, one(calls, "fsync", f"<{path.parent}>", moved.ended)

    _, prepared = anchored(rows["total"])
    written, durable = anchored(rows["charge"])
    held = one(calls, "fdatasync", f"{path}-wal>", prepared.ended)
    committed = one(calls, "fdatasync", f"{path}-wal>", held.ended)
    # The kernel cannot always tell strace which socket it is, so every socket counts.
    sent = [
        call for call in calls if call.name in ("sendmsg", "sendto") and call.began > durable.ended
    ]
    after = [call for call in sent if call.result >= SHARE_BYTES]
    assert after, f"nothing as long as the share was sent after the charge was on disk, only {sent}"
    share = after[0]
    assert prepared.ended < held.ended < committed.began
    assert committed.ended < written.began < durable.ended < share.began
    wal = [call for call in calls if call.name == "fdatasync" and f"{path}-wal>" in call.text]
    assert not [call for call in wal if written.began < call.began < share.began], (
        "the anchor came before the row"
    )


if can_trace():
    test_the_charge_is_on_disk_before_the_share_is_sent = (
        the_charge_is_on_disk_before_the_share_is_sent
    )


def test_the_reader_of_traces_puts_interrupted_calls_together():
    text = (
        "7 fsync(3</a> <unfinished ...>\n8 sendmsg(4<TCP:[x]>, {}, 0) = 9\n"
        "7 <... fsync resumed>)              = 0\n+++ exited +++"
    )
    assert calls_of(text) == [
        Call("fsync", "3</a> <unfinished ...>", 0, 2, 0),
        Call("sendmsg", "4<TCP:[x]>, {}, 0) = 9", 1, 1, 9),
    ]
