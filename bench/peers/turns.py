"""Figures of turns that were taken in a round robin, as min, median and max.

In a round robin every way takes one turn before any takes its next, so other work on the machine
slows all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Turn:
    """One run of the job.

    connecting: seconds until all processes are connected. in_all: seconds from then to the result.
    online: seconds of the computation on data. data_bytes, ahead_bytes: bytes of the computation
    on data, and of all that needs none, over all links.
    """

    connecting: float
    in_all: float
    online: float
    data_bytes: float
    ahead_bytes: float | None

    @property
    def with_connecting(self) -> float:
        return self.connecting + self.in_all


COLUMNS = ("milliseconds", "in all", "with connecting", "online", "bytes", "ahead")
"""Bytes are those of the computation on data; those ahead of it need no data."""


def round_robin(ways: Mapping[str, Callable[[], Turn]], turns: int) -> dict[str, list[Turn]]:
    """Let every way take its turns, after one that is not counted."""
    taken: dict[str, list[Turn]] = {name: [] for name in ways}
    for number in range(turns + 1):
        for name, way in ways.items():
            turn = way()
            if number:
                taken[name].append(turn)
    return taken


def row(name: str, turns: Sequence[Turn]) -> tuple[str, ...]:
    """One way's figures."""
    seconds = (
        [turn.in_all for turn in turns],
        [turn.with_connecting for turn in turns],
        [turn.online for turn in turns],
    )
    ahead = [turn.ahead_bytes for turn in turns if turn.ahead_bytes is not None]
    return (
        name,
        *(spread([1e3 * value for value in values]) for values in seconds),
        f"{median(turn.data_bytes for turn in turns):,.0f}",
        f"{median(ahead):,.0f}" if ahead else "in those",
    )


def spread(values: Sequence[float]) -> str:
    """Min–median–max."""
    cells = (min(values), median(values), max(values))
    return "–".join(f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in cells)
