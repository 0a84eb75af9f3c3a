"""`make peers`: umpc on the job of docs/peers.md, beside the machine's own figures.

Every cell of time is min–median–max over turns in a round robin. A peer is run where it is at hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench.harness import cores, site
from bench.limits import aes_blocks_per_second
from bench.peers.job import NODES, job_table, ways
from bench.peers.machine import fsync_seconds
from bench.peers.peers import spu_row
from bench.peers.turns import COLUMNS, round_robin, row
from bench.table import show
from umpc.native import status

TURNS = 9
INCLUDED = """\
"In all" runs from all processes being connected to the finished report. umpc's includes the check
of the study, the joint seed that fixes the pairs, the correlated randomness (unless prepared
ahead), the charge that each ledger makes durable, the noise, and the checked shares. All of it
is over mutual TLS, between warm processes. "With connecting" adds the coordinator's connections.
"Online" runs from the first masked record to the last share. Bytes are those of all links, as
umpc counts its messages. SPU's row has the sharing of the input, the comparisons and the opening:
no TLS, no joint seed, no ledger, no noise. docs/peers.md has the others."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--spu", metavar="PYTHON", help="a Python that has SPU")
    options = parser.parse_args(arguments)
    print(f"AES-128 on one core: {aes_blocks_per_second() / 1e6:.0f} M blocks/s")
    print(f"4 KiB and fsync, median: {1e3 * fsync_seconds():.2f} ms")
    print(f"compiled gate: {status()}; {cores()} cores")
    with site(job_table(), NODES) as here:
        taken = round_robin(ways(here), options.turns)
    rows = [row(name, turns) for name, turns in taken.items()]
    failures = []
    for protocol in ("semi2k", "cheetah") if options.spu else ():
        try:
            rows.append(spu_row(options.spu, protocol, options.turns))
        except RuntimeError as error:
            failures.append(str(error))
    title = f"Kendall's sum, 9,042 cross pairs, 8 bits; min–median–max of {options.turns} turns"
    show(title, COLUMNS, rows)
    print(INCLUDED)
    for failure in failures:
        print(f"failed: SPU, {failure}")


if __name__ == "__main__":
    main()
