"""A small study without a dealer, beside its targets; part of `python -m bench targets`.

Two tables: that of `make peers`, with fields of 0 to 127, and the bank's age and balance, whose
differences have 8 and 18 bits. Each study takes 4n pairs, so about 9,042 of them are garbled.

- *in all*: from all processes being connected to the report. It includes the check of the study,
  the joint seed, **base transfers by curve points**, the committee's coins, garbled edges, the
  ledgers' charges and the noise.
- *in all, pooled*: the same over nodes that keep channels (`umpc/node/attempts/next_channels.py`).
  So base transfers were made after the study before, and nothing else was.
- *sent for an edge*: all that the nodes sent, before the data and on the data, for each garbled
  edge. A kept channel counts with the bytes of its set-up.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from statistics import median

from bench.harness import RECORDS, Site, bank_table, site
from bench.peers.job import NODES, WAYS, job_table, turn
from bench.peers.turns import COLUMNS, Turn, round_robin, row
from bench.table import Figure, show
from umpc.api.event_loop import run_now

PAUSE_SECONDS = 0.3
"""Between two studies nodes make the next channel."""
UNPOOLED = (sys.executable, "-m", "bench.unpooled")
SETTINGS = WAYS["umpc without a dealer"]
EDGES = 2 * RECORDS
"""Edges of two nodes, about: half of 4n."""
ALL, POOLED = "without a dealer", "without a dealer, pooled"
BANK_ALL, BANK_POOLED = f"{ALL}, bank", f"{POOLED}, bank"
TARGETS = {ALL: 95, POOLED: 60, BANK_ALL: 95, BANK_POOLED: 60}
"""The most milliseconds of each way, in all."""
MOST_BYTES = 1300
"""Bytes for each garbled edge."""


def main(turns: int) -> list[Figure]:
    bank, source = bank_table()
    with ExitStack() as sites:
        jobs = {}
        for table, names in ((job_table(), (ALL, POOLED)), (bank, (BANK_ALL, BANK_POOLED))):
            for name, command in zip(names, (UNPOOLED, None), strict=True):
                here = site(table, NODES, dealer=False, command=command)
                jobs[name] = _way(sites.enter_context(here))
        taken = round_robin(jobs, turns)
    title = f"Small studies without a dealer, min–median–max of {turns}; bank: {source}"
    show(title, COLUMNS, [row(name, each) for name, each in taken.items()])
    return figures_of(taken)


def figures_of(taken: Mapping[str, Sequence[Turn]]) -> list[Figure]:
    """Every target's line. Args: taken: the turns of each way."""
    found = []
    for way, most in TARGETS.items():
        middle = 1e3 * median(turn.in_all for turn in taken[way])
        found.append(
            Figure(f"{way}: in all", f"{middle:.1f} ms", f"at most {most} ms", middle <= most)
        )
    for way in (POOLED, BANK_POOLED):
        sent = median(turn.data_bytes + (turn.ahead_bytes or 0) for turn in taken[way]) / EDGES
        target = f"at most {MOST_BYTES:,} bytes"
        found.append(
            Figure(f"{way}: sent for an edge", f"{sent:.0f} bytes", target, sent <= MOST_BYTES)
        )
    return found


def _way(here: Site) -> Callable[[], Turn]:
    def take() -> Turn:
        time.sleep(PAUSE_SECONDS)
        return run_now(turn(here.study_file(**SETTINGS), is_ahead=False))

    return take
