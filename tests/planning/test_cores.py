"""Independent pieces of planning on all cores."""

from __future__ import annotations

import os
import subprocess
import sys

from umpc.planning.alternatives import map_on_cores

FORKED = """
import os
from umpc.errors import StudyError
from umpc.planning.alternatives import map_on_cores
base = 100  # closures are inherited, not pickled
found = list(map_on_cores(lambda job: (job + base, os.getpid()), range(6)))
assert [value for value, _ in found] == list(range(100, 106)), found
others = {process for _, process in found} - {os.getpid()}
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
assert bool(others) == (cores > 1), found
def refuse(job):
    raise StudyError(f"job {job}")
try:
    list(map_on_cores(refuse, range(3)))
except StudyError as reason:
    print(reason)
"""


def test_results_of_forked_processes_come_in_order_and_errors_come_back():
    ended = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert ended.stdout.strip() == "job 0", ended.stderr


def test_a_process_with_grpc_is_not_forked():
    import grpc

    assert grpc.__version__
    assert list(map_on_cores(lambda job: (job, os.getpid()), range(3))) == [
        (job, os.getpid()) for job in range(3)
    ]
