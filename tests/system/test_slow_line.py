"""A study over a line of 1 Mbit/s, which takes longer than any silence is borne, ends well."""

from __future__ import annotations

import subprocess
import sys

from tests.system.conftest import TABLE
from umpc.transport.heartbeat import SILENT_SECONDS

MEGABITS = 1
EDGES = 30_000
"""Their material takes longer over the line than a silence is borne."""


def test_a_study_over_a_slow_line_ends_well(lab):
    here = lab(2).start()
    head, *rows = TABLE.splitlines(keepends=True)
    for name in here.names:
        here.table(name).write_text(head + "".join(5 * rows))
    slow = ("dealer", "node-2")
    at = {name: served.address for name, served in here.served.items()}
    command = [sys.executable, "-m", "bench.proxy", "20", str(MEGABITS), *map(at.get, slow)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as proxy:
        try:
            at |= {name: proxy.stdout.readline().strip() for name in slow}
            nodes = [(name, at[name]) for name in here.names]
            outcome = here.run(nodes=nodes, dealer=("dealer", at["dealer"]), edges=str(EDGES))
        finally:
            proxy.stdin.close()
    assert outcome.code == 0, outcome.error
    sent = outcome.report["bytes_offline"]
    assert sent / (MEGABITS * 125_000) > SILENT_SECONDS
