"""How long this machine takes to make a record durable. Every study of umpc waits for it."""

from __future__ import annotations

import os
import tempfile
import time
from statistics import median

RECORD = bytes(4096)


def fsync_seconds(times: int = 50) -> float:
    """The median of writing 4 KiB and fsync, in the folder of temporary files."""
    taken = []
    with tempfile.TemporaryFile(prefix="umpc-fsync-", buffering=0) as file:
        for _ in range(times):
            started = time.perf_counter()
            file.write(RECORD)
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - started)
    return median(taken)
