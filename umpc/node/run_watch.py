"""The observer of one study at a node, for traces. It learns steps and outcome, and no value.

The node knows nothing of the library that makes traces: `umpc/monitoring/traces.py` has the same
methods.
"""

from __future__ import annotations

from typing import Protocol

from umpc.errors import UmpcError


class RunWatch(Protocol):
    """An observer of one study."""

    def attempt(self) -> None:
        """The study's attempt begins."""

    def step(self, name: str) -> None:
        """The step of this name begins."""

    def end(self, study_hash: bytes | None, error: UmpcError | None) -> None:
        """The study has ended, without a hash if none was proposed."""


class Unwatched:
    """Nobody observes."""

    def attempt(self) -> None:
        """Do nothing."""

    def step(self, name: str) -> None:
        """Do nothing."""

    def end(self, study_hash: bytes | None, error: UmpcError | None) -> None:
        """Do nothing."""
