"""Events as text, one line each, for a site's ledger: `laplace 10 1` or `skellam 1/2,3 1,4`.

| line | event |
|---|---|
| `pure EPSILON` | `PureEvent` |
| `approximate EPSILON DELTA` | `ApproximateEvent` |
| `failure DELTA` | `FailureEvent` |
| `laplace SCALE SENSITIVITY` | `LaplaceEvent` |
| `gaussian VARIANCE,… SENSITIVITY,…` | `GaussianEvent` |
| `zcdp RHO` | `ConcentratedEvent` |
| `skellam VARIANCE,… SENSITIVITY,…` | `SkellamEvent` |

A line that comes several times is written once, with its number and `×` before it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from fractions import Fraction
from typing import Any

from umpc.dp.events import (
    ApproximateEvent,
    ConcentratedEvent,
    Event,
    FailureEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SkellamEvent,
)
from umpc.errors import EncodingError

LAWS: dict[str, type[Any]] = {
    "pure": PureEvent,
    "approximate": ApproximateEvent,
    "failure": FailureEvent,
    "laplace": LaplaceEvent,
    "gaussian": GaussianEvent,
    "zcdp": ConcentratedEvent,
    "skellam": SkellamEvent,
}
NAMES = {law: name for name, law in LAWS.items()}
TIMES = " × "


def encode_events(events: tuple[Event, ...]) -> str:
    """Return the events as text, equal ones together. Their order means nothing."""
    lines = []
    for event, times in Counter(events).items():
        values = " ".join(_written(value) for value in vars(event).values())
        line = f"{NAMES[type(event)]} {values}"
        lines.append(line if times == 1 else f"{times}{TIMES}{line}")
    return "\n".join(lines)


def decode_events(text: str) -> tuple[Event, ...]:
    """Return the events of a text. Raises: EncodingError where it is none."""
    try:
        return tuple(event for line in text.splitlines() for event in _events(line))
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise EncodingError(
            f"an event such as 'laplace 10 1' was expected, and {text[:80]!r} came. "
            "This is a fault; report it"
        ) from error


def _events(line: str) -> tuple[Event, ...]:
    times, _, event = line.rpartition(TIMES)
    name, *values = event.split(" ")
    law = LAWS[name]
    kinds = [field.type for field in dataclasses.fields(law)]
    arguments = [_read(kind, value) for kind, value in zip(kinds, values, strict=True)]
    return (law(*arguments),) * int(times or 1)


def _written(value: Fraction | int | tuple[Fraction | int, ...]) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _read(kind: object, value: str) -> Fraction | int | tuple[Fraction | int, ...]:
    """Read one parameter. Args: kind: its annotation in the event's class."""
    number = int if "int" in str(kind) else Fraction
    if str(kind).startswith("tuple"):
        return tuple(number(part) for part in value.split(","))
    return number(value)
