"""The limit of open files, in a process of its own: it can be raised and never lowered again."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from umpc.cli.memory import allow_many_files
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))
allow_many_files()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (512, 512)
"""


def test_a_process_opens_as_many_files_as_the_system_grants():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
