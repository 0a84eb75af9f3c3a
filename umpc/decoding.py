"""Values of a document as structs, in one thread at a time.

msgspec works out how to decode a struct when it first does so, and stores what it found on the
class. Two threads that do so at once crash their process (msgspec 0.22): two first studies of one
node, or two studies that a program starts side by side. Everything that decodes therefore does so
here, under one lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

Decoded = TypeVar("Decoded")

_LOCK = threading.RLock()
"""Held again where a document's hook converts one of its parts."""


def convert(value: Any, kind: type[Decoded]) -> Decoded:
    """Return plain values as a `kind`. Raises: msgspec.ValidationError naming the place."""
    with _LOCK:
        return msgspec.convert(value, type=kind)


def decode(
    data: bytes, kind: type[Decoded], hook: Callable[[type, Any], Any] | None = None
) -> Decoded:
    """Return JSON as a `kind`.

    Args: hook: makes the values of types that msgspec does not know.
    Raises: msgspec.MsgspecError; UnicodeDecodeError; RecursionError.
    """
    with _LOCK:
        return msgspec.json.decode(data, type=kind, dec_hook=hook)
