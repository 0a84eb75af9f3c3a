"""The compiled sign gate (`native/`, optional), if one is installed that fits this version and this processor.

It gives the same bytes as `tree.py`, which is used without it. UMPC_NATIVE=0 in the environment turns it off.
"""

from __future__ import annotations

from types import ModuleType

KEY_FORMAT = 1
"""Of comparison keys, as `comparison.py` describes them."""


def find() -> ModuleType | None:
    try:
        import umpc_native
    except ImportError:
        return None
    return umpc_native if umpc_native.KEY_FORMAT == KEY_FORMAT and umpc_native.enabled() else None


KERNEL = find()
