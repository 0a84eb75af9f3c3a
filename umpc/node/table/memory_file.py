"""A file in memory for an object of a store, with a name in a folder that leads to it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from umpc.errors import ConfigError, DataError
from umpc.node.table.source import TableSite


def named_file(name: Path, site: TableSite) -> Any:
    """Return a file in memory, to which a name leads. Raises: ConfigError, DataError."""
    try:
        file = _anonymous_file(site)
        try:
            name.parent.mkdir(parents=True, exist_ok=True)
            name.symlink_to(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        except OSError:
            file.close()
            raise
    except OSError as error:
        raise site.error(
            DataError,
            "the table's objects were expected to be opened as files in memory, and the system "
            "refused. The node's own log says why",
            _why_no_file(error),
        ) from None
    return file


def _why_no_file(error: OSError) -> str:
    """Return what to do where a file in memory cannot be made."""
    advice = {
        errno.EMFILE: "each object is one open file: raise the node's limit (LimitNOFILE, ulimit "
        "-n), or write fewer and larger objects",
        errno.EEXIST: "the key of one object is the folder of another: rename one of the two",
    }
    # both are the same fault: which one comes depends on the order of the keys
    advice[errno.ENOTDIR] = advice[errno.EEXIST]
    said = os.strerror(error.errno or 0)
    return "; ".join([said, *([advice[error.errno]] if error.errno in advice else [])])


def _anonymous_file(site: TableSite) -> Any:
    """Return a file in memory that has no name."""
    if not hasattr(os, "memfd_create"):
        raise site.error(
            ConfigError,
            "a table in an object store was expected to be read on Linux, which has files in "
            "memory, and this is another system. Copy the objects into files, and name them as "
            "path under [data]",
        )
    return os.fdopen(os.memfd_create("umpc-object"), "wb", buffering=0)
