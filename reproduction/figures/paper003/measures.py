"""The measurements of one batch: errors, bytes, and seconds of the protocols that are timed."""

from __future__ import annotations

from reproduction.figures.figure import Measured, Point
from reproduction.figures.paper003.clocks import TIMED, clock
from reproduction.figures.paper003.protocols import squared_errors
from reproduction.figures.paper003.traffic import bytes_of


def errors_and_bytes(point: Point, seed: bytes) -> Measured:
    return {"squared_error": squared_errors(point, seed), **bytes_of(point.facts)}


def everything(point: Point, seed: bytes) -> Measured:
    seconds = clock(point, seed) if point.facts["protocol"] in TIMED else {}
    return {**errors_and_bytes(point, seed), **seconds}


def seconds_and_bytes(point: Point, seed: bytes) -> Measured:
    return {**clock(point, seed), **bytes_of(point.facts)}


def nothing(point: Point) -> None:
    """No prediction: no theory says how long a computation takes."""
