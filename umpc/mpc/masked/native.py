"""The compiled sign gate (`native/`, optional), if one is installed that fits.

It must fit this version and this processor. It gives the same bytes as `dcf_tree.py`, which is used
without it. UMPC_NATIVE=0 in the environment turns it off.
"""

from __future__ import annotations

import importlib
from types import ModuleType

KEY_FORMAT = 1
"""The version of the comparison keys that `dcf.py` describes."""


def find() -> ModuleType | None:
    """The compiled module, or None where it is missing, too old, or turned off."""
    try:
        module = importlib.import_module("umpc_native")
    except ImportError:
        return None
    return module if module.KEY_FORMAT == KEY_FORMAT and module.enabled() else None


KERNEL = find()
