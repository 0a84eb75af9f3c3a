"""How many nodes this process runs: with `--many` they fetch what all of them need once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class HostedNodes:
    """The nodes of one process."""

    nodes: int = 1

    @property
    def many(self) -> bool:
        return self.nodes > 1


HOSTED = HostedNodes()
"""Those of this process."""
