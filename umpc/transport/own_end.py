"""Whether this process is being stopped: what ends with it is then not the fault of a peer."""

from __future__ import annotations

import threading

from umpc.errors import PeerLost, StudyAborted, UmpcError

_STOPPED = threading.Event()
"""Set once, when the process begins to end. It has one for all its servers."""


def begin_end() -> None:
    """Note that this process is being stopped, by a signal or after its last study."""
    _STOPPED.set()


def of_own_end(error: UmpcError) -> UmpcError:
    """Return why a study ended: a peer's end is a consequence, where this process is being stopped.

    Args: error: what the study ended with.
    """
    if not _STOPPED.is_set() or not isinstance(error, PeerLost | StudyAborted):
        return error
    return StudyAborted(
        "this process was stopped while the study ran; start it again, then run the study again",
        step=error.step,
        detail=error.message,
    )
