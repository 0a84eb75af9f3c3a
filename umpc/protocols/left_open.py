"""Whether a study file leaves the choice between the grid and pairs open; `auto.py` then chooses.

Most files do not, and then no command loads the grid to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from umpc.protocols.grid.settings import EDGES
from umpc.protocols.registry import USUAL

AUTO = "auto"


def is_open(name: str | None, entries: Mapping[str, Any]) -> bool:
    """Whether a study file leaves the choice open.

    It does with backend = "auto". It also does if it names no protocol, backend or preprocessing,
    and no edges but "all".

    Args: name: the protocol, where the file names one. entries: the file's settings.
    """
    if entries.get("backend") == AUTO:
        return name in (None, USUAL)
    named = [key for key in ("backend", "preprocessing") if key in entries]
    return name is None and not named and entries.get("edges", EDGES) == EDGES
