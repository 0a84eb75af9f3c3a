"""Vectors: calls of the specification's functions with their results, and calls that are refused.

A module of `cases/` lists vectors in GOOD and BAD. Each names a function, of that module or of the
specification's module of the same name, and its arguments:

    GOOD: list of (function, name of the vector, arguments)
    BAD:  list of (function, what was broken, arguments)

In JSON, bytes are text that begins with "0x", and everything else is as it is. Integers are whole
and may exceed 2^53. A bad vector also names the check that refuses it, and the process that is to
blame, or null.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from spec.refused import Refused

Arguments = dict[str, Any]
Good = list[tuple[str, str, Arguments]]
Bad = list[tuple[str, str, Arguments]]


def to_json(value: Any) -> Any:
    """A value of the specification as JSON."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, dict):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    return value


def from_json(value: Any) -> Any:
    """The inverse of `to_json`; tuples come back as lists."""
    if isinstance(value, str) and value.startswith("0x"):
        return bytes.fromhex(value[2:])
    if isinstance(value, dict):
        return {key: from_json(each) for key, each in value.items()}
    return [from_json(each) for each in value] if isinstance(value, list) else value


def document(part: ModuleType, cases: ModuleType) -> Arguments:
    """All vectors of a part, with what its functions return or refuse."""

    def call(function: str, given: Arguments) -> Any:
        module = cases if hasattr(cases, function) else part
        return getattr(module, function)(**given)

    good, bad = [], []
    for function, name, given in cases.GOOD:
        told = {"name": name, "function": function, "inputs": given}
        good.append({**told, "outputs": call(function, given)})
    for function, name, given in cases.BAD:
        told = {"name": name, "function": function, "inputs": given}
        try:
            call(function, given)
        except Refused as refused:
            bad.append({**told, "check": refused.check, "culprit": refused.culprit})
        else:
            raise AssertionError(f"the bad vector {name!r} of {part.__name__} was not refused")
    about = (part.__doc__ or "").split("\n")[0]
    return to_json({"about": about, "good": good, "bad": bad})


def counting(label: int, size: int = 32) -> bytes:
    """Bytes that count upwards from 16 times a number: seeds of vectors."""
    return bytes((16 * label + place) % 256 for place in range(size))
