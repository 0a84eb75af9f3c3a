"""Two first decodings at once do not end the process, and nothing decodes past the lock."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import umpc
import umpc_papers

AT_ONCE = """
import sys, threading
import msgspec
from umpc.decoding import convert, decode

sys.setswitchinterval(1e-6)
THREADS, KINDS = 8, 40

def kind():
    part = msgspec.defstruct("Part", [(f"key{n}", "list[int] | None", None) for n in range(5)])
    rows = tuple[part, ...] | None
    return msgspec.defstruct("Whole", [(f"key{n}", rows, None) for n in range(8)])

kinds = [kind() for _ in range(KINDS)]
together = threading.Barrier(THREADS)

def first_use(number):
    for kind in kinds:
        together.wait()
        if number % 2:
            whole = convert({"key0": [{"key0": [1]}]}, kind)
        else:
            whole = decode(b'{"key0": [{"key0": [1]}]}', kind)
        assert whole.key0[0].key0 == [1]

threads = [threading.Thread(target=first_use, args=(number,)) for number in range(THREADS)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("all decoded")
"""
PAST_THE_LOCK = re.compile(r"\bmsgspec\.(convert|json\.decode|\w+\.Decoder)\b")


def test_threads_may_decode_structs_for_the_first_time_at_once():
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "all decoded\n", "")


def test_nothing_decodes_past_the_lock():
    roots = [Path(package.__file__).parent for package in (umpc, umpc_papers)]
    files = {file for root in roots for file in root.rglob("*.py")}
    found = {file.name for file in files if PAST_THE_LOCK.search(file.read_text("utf-8"))}
    assert found == {"decoding.py"}


@pytest.mark.parametrize(
    "line",
    ["msgspec.convert(values, type=A)", "msgspec.json.decode(data)", "msgspec.json.Decoder(A)"],
)
def test_each_way_past_the_lock_would_be_found(line):
    assert PAST_THE_LOCK.search(line)
