"""The state of a run in a file beside its study file, for `umpc study watch` in another process.

`study.toml.run` exists while the run goes on. It names nodes, steps and times, and holds nothing of
data. A run whose folder cannot be written goes on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SUFFIX = ".run"
EVERY_SECONDS = 0.5
"""Seconds after which changes are written, all of them at once."""
MOST_BYTES = 1 << 24

Note = Callable[[str, str, int, int], None]
"""Takes notes of a run. Arguments: node, step, parts of it that are done, parts in all.

The step "connect" is done when the node is connected. Every other one is done with its answer.
"""


def no_note(node: str, step: str, done: int, total: int) -> None:
    """Take no note."""


@dataclass
class NodeState:
    """One node in a run. connected: since when, in seconds since 1970, or None."""

    connected: float | None = None
    step: str = "connect"
    since: float = 0.0
    done: int = 0
    total: int = 1


@dataclass
class RunState:
    """A run. Times are in seconds since 1970."""

    study: str
    pid: int
    begun: float
    nodes: dict[str, NodeState] = field(default_factory=dict)


class RunFile:
    """Writes a run's state for as long as the block lasts, which is in an event loop.

    Args: file: the study file. now: the clock, in seconds since 1970.
    """

    def __init__(
        self, file: Path, study: str, names: list[str], now: Callable[[], float] = time.time
    ):
        self.path = path_beside(file)
        self._now = now
        begun = now()
        nodes = {name: NodeState(since=begun) for name in names}
        self._state = RunState(study, os.getpid(), begun, nodes)
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> RunFile:
        self._write()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def note(self, node: str, step: str, done: int, total: int) -> None:
        """Note how far a node is."""
        state, now = self._state.nodes[node], self._now()
        if step != state.step:
            state.step, state.since = step, now
        state.done, state.total = done, total
        if step == "connect" and done == total:
            state.connected = now
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._write)

    def _write(self) -> None:
        """Replace the file as a whole, so that nobody reads half of it."""
        self._timer = None
        new = self.path.with_name(self.path.name + ".new")
        with contextlib.suppress(OSError):
            new.write_text(json.dumps(asdict(self._state)), encoding="utf-8")
            new.replace(self.path)


def path_beside(file: Path) -> Path:
    """Return the place of a run's state, from that of its study file."""
    return file.with_name(file.name + SUFFIX)


def read_run(file: Path) -> RunState | None:
    """Return the state of the study file's run, or None if none goes on."""
    try:
        with path_beside(file).open(encoding="utf-8") as opened:
            found: dict[str, Any] = json.loads(opened.read(MOST_BYTES))
        nodes = {name: NodeState(**each) for name, each in found["nodes"].items()}
        return RunState(found["study"], found["pid"], found["begun"], nodes)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def has_died(state: RunState) -> bool:
    """Return whether the process of a run is gone, although its file is there."""
    try:
        os.kill(state.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
