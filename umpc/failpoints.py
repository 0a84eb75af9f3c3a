"""Places where a test makes a process fail: kill -9, stop, or hang, at a named point of a study.

Set UMPC_FAILPOINT="name:action" before the process starts; unset, which is always so outside tests, each call is one
comparison. A process that starts with a failpoint says so on standard error. Points are named where they stand; the
ledger's by its row's kind and the step of writing it, such as charge-before-commit (`node/ledgerfile.py`, append).
"""

from __future__ import annotations

import os
import signal

_NAME, _, _ACTION = os.environ.get("UMPC_FAILPOINT", "").partition(":")
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def failpoint(name: str) -> None:
    """Fail here if this is the point that the environment names."""
    if name == _NAME:
        os.kill(os.getpid(), _SIGNALS[_ACTION])


def describe() -> str:
    """What is armed, or nothing."""
    return f"failpoint {_NAME}:{_ACTION} is armed" if _NAME else ""
