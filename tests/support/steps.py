"""The steps of a call, counted without a clock: lines executed in umpc, and random bits drawn.

Two draws of one law must show the same steps, whatever they return. The lines are compared one by
one, so a loop that ends early, a branch taken for one value only, or a value looked up in a cache
makes a difference.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import umpc
from umpc.dp.random_bits import RandomBits

PACKAGE = Path(umpc.__file__).parent
COUNTED = tuple(f"{folder}/" for folder in (PACKAGE, PACKAGE.parent / "tests" / "reproduction"))
"""Folders whose lines count. A clone named umpc has packages of others below its own name."""


def steps_of(
    call: Callable[[RandomBits], Any], bits: RandomBits, besides: str = "/no file/"
) -> tuple[Any, str, int]:
    """Return what the call returns, a digest of its lines and requests, and their number.

    Args: besides: a part of the path of files whose lines do not count.
    """
    digest, count = hashlib.sha256(), 0

    def note(event: str) -> None:
        nonlocal count
        digest.update(event.encode() + b"\n")
        count += 1

    def counted(size: int) -> int:
        note(f"bits {size}")
        return bits(size)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(COUNTED) or besides in name:
            return None
        if event == "line":
            note(f"{name}:{frame.f_lineno}")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = call(counted)
    finally:
        sys.settrace(before)
    return result, digest.hexdigest(), count
