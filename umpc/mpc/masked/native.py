"""The compiled sign gate (`umpc/native/`), where it can run.

It gives the same bytes as `dcf_tree.py`, which is used without it. UMPC_NATIVE=0 in the environment
turns it off (`umpc/native/library.py`).
"""

from __future__ import annotations

from types import ModuleType

from umpc import native


def find() -> ModuleType | None:
    """The compiled gate; None where it was not built, cannot run, or is turned off."""
    return native if native.CHOSEN is not None else None


KERNEL = find()
