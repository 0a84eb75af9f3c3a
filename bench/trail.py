"""The audit trail of a node over many years: seconds and memory of `umpc audit verify`.

`python -m bench.trail --rows 1000000` writes a trail in a temporary folder, with a charge in every
fourth row. It verifies the trail as the command does for a ledger with the last thousand charges,
in a process of its own. Seconds are those of the clock and of the processor.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.table import show
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.budget.ledger_place import Place
from umpc.transport.files import write_durably

AT_ONCE = 10_000
MIB = 1 << 10
"""Kibibytes of a mebibyte; the system counts memory in kibibytes."""
VERIFY = """
import sys
from pathlib import Path
from umpc.node.audit.trail import key_of
from umpc.node.audit.reading import verify
from umpc.node.budget.ledger_place import read_key
rows = int(sys.argv[3])
charged = frozenset(number.to_bytes(32, "big") for number in range(rows - 4000, rows, 4))
key = key_of(read_key(Path(sys.argv[2])))
found = verify(Path(sys.argv[1]), key, sought=charged)
assert found.head.seq == rows and found.charged == charged
"""


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory(prefix="umpc-trail-") as folder:
        ledger = Path(folder) / "ledger.sqlite"
        key = Place.of(ledger).key
        write_durably(key, os.urandom(32))
        key.chmod(0o600)
        trail = AuditTrail(ledger)
        begun = time.monotonic()
        for start in range(0, rows, AT_ONCE):
            trail.append(*map(row, range(start, min(rows, start + AT_ONCE))))
        written = time.monotonic() - begun
        size = trail.path.stat().st_size
        begun = time.monotonic()
        words = [sys.executable, "-c", VERIFY, str(trail.path), str(key), str(rows)]
        subprocess.run(words, check=True)
        seconds = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cells = (
        f"{rows:,}",
        f"{size / 1e6:,.0f} MB",
        f"{written:.1f} s",
        f"{seconds:.1f} s",
        f"{used.ru_utime + used.ru_stime:.1f} s",
        f"{used.ru_maxrss / MIB:.0f} MiB",
    )
    columns = ("rows", "file", "write", "verify", "its processor", "its memory")
    show("An audit trail", columns, [cells])


def row(number: int) -> AuditRow:
    """A row as a node writes it. One in four is a charge."""
    return AuditRow(
        ("charge", "proposal", "release", "ended")[number % 4],
        study=f"{number:064x}",
        name=f"study {number}",
        coordinator="coordinator",
        statistic="kendall_tau",
        fields=("age", "balance"),
        epsilon="1/10",
        delta="0",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    main(parser.parse_args().rows)
