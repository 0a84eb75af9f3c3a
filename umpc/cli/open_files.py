"""The limit of open files of a process that has one for each node."""

from __future__ import annotations

import contextlib
import resource


def allow_many_files() -> None:
    """Let this process open as many files as the system grants.

    Many systems let a process open 1,024, unless it asks for more. A hub or a coordinator of 1,000
    nodes has a connection for each, and a node in a host of many takes about ten files.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS grants less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
