"""Which kind of the compiled gate runs: the fastest, or the one that UMPC_NATIVE names.

| UMPC_NATIVE | runs |
|---|---|
| not set, empty or 1 | the fastest kind that this processor has, else numpy |
| 0 or numpy | numpy |
| a name of `library.KINDS`, in any case | this kind; an error where it cannot run |
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from umpc.errors import ConfigError
from umpc.native.library import LIBRARY, kinds

VARIABLE = "UMPC_NATIVE"
AUTOMATIC, OFF = ("", "1"), ("0", "numpy")


def choose(setting: str, able: Sequence[str]) -> str | None:
    """Return the kind that runs; None for numpy.

    Args: setting: the text of UMPC_NATIVE. able: the kinds that can run, the fastest last.

    Raises: ConfigError for a setting that names nothing that can run.
    """
    wanted = setting.strip().lower()
    if wanted in OFF:
        return None
    if wanted in AUTOMATIC:
        return able[-1] if able else None
    for kind in able:
        if kind.lower() == wanted:
            return kind
    raise ConfigError(
        f"{VARIABLE} is one of {', '.join(['0', '1', *able])} on this machine, got {setting!r}"
    )


def explained(chosen: str | None, setting: str, able: Sequence[str], is_built: bool) -> str:
    """Say in a few words which gate runs, and why."""
    if chosen is not None:
        others = [kind for kind in able if kind != chosen]
        return f"compiled, {chosen}" + (f" (also here: {', '.join(others)})" if others else "")
    if not is_built:
        return "numpy (this installation has no compiled gate)"
    if not able:
        return "numpy (this processor has none of the instructions of the compiled gate)"
    return f"numpy ({VARIABLE}={setting}; also here: {', '.join(able)})"


CHOSEN = choose(os.environ.get(VARIABLE, ""), kinds())
"""The kind that this process runs; None for numpy."""


def status() -> str:
    """Which gate this process runs, and why, in a few words."""
    return explained(CHOSEN, os.environ.get(VARIABLE, ""), kinds(), LIBRARY is not None)
