"""Failpoints: named points of a study at which a test makes a process fail or stop.

Set UMPC_FAILPOINT="name:action" before the process starts. The action "kill" sends SIGKILL and
"stop" sends SIGSTOP. Without the variable, which is always so outside tests, each call is one
comparison. A process that starts with a failpoint says so on standard error.

A point's name stands in the call that it names. The ledger's points are named by the kind of its
row and the step of writing it, such as charge-before-commit (`umpc/node/budget/`). Those of a hub
are named by the number of envelopes that have come, such as relayed-40.
"""

from __future__ import annotations

import os
import signal

_NAME, _, _ACTION = os.environ.get("UMPC_FAILPOINT", "").partition(":")
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def failpoint(name: str) -> None:
    """Fail here if the environment names this point."""
    if name == _NAME:
        os.kill(os.getpid(), _SIGNALS[_ACTION])


def is_armed() -> bool:
    """Whether any point is armed, for callers that would compose a name very often."""
    return bool(_NAME)


def describe() -> str:
    """A sentence that names the armed failpoint; empty if none is armed."""
    return f"failpoint {_NAME}:{_ACTION} is armed" if _NAME else ""
