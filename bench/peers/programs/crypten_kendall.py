"""Kendall's sum over pairs of two owners with CrypTen, in two processes over loopback.

Run it with a Python that has `crypten` 0.4.1 and a PyTorch of its time (docs/peers.md). CrypTen has
one ring of 64 bits, and its usual provider deals triples from a process that is trusted. This
program was not run where this project was written.
"""

from __future__ import annotations

import statistics
import sys
import time

PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 9042
RUNS = 9


def main() -> None:
    import crypten
    import crypten.mpc
    import torch
    from crypten.config import cfg

    @crypten.mpc.run_multiprocess(world_size=2)
    def job() -> list[float]:
        cfg.encoder.precision_bits = 0
        generator = torch.Generator().manual_seed(1)
        mine, theirs = (
            torch.randint(0, 128, (2, PAIRS), generator=generator).float() for _ in range(2)
        )
        expected = (torch.sign(mine[0] - theirs[0]) * torch.sign(mine[1] - theirs[1])).sum()
        taken = []
        for _ in range(RUNS + 1):
            started = time.perf_counter()
            left, right = crypten.cryptensor(mine, src=0), crypten.cryptensor(theirs, src=1)
            signs = (left > right) - (left < right)
            found = (signs[0] * signs[1]).sum().get_plain_text()
            taken.append(time.perf_counter() - started)
            assert found == expected, (found, expected)
        return taken[1:]

    taken = job()[0]
    print(f"in all: {min(taken):.3f}–{statistics.median(taken):.3f}–{max(taken):.3f} s")


if __name__ == "__main__":
    main()
