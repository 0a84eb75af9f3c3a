"""Find all objects that one object holds, to test that a secret is forgotten or hidden."""

from __future__ import annotations

import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

Kind = TypeVar("Kind")
CODE = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)
"""A way through code would lead to the whole program."""


def held(thing: Any, kind: type[Kind]) -> list[Kind]:
    """All objects of a kind that `thing` refers to, over any number of other objects."""
    seen: dict[int, Any] = {}
    to_see = [thing]
    while to_see:
        each = to_see.pop()
        if id(each) in seen or isinstance(each, CODE):
            continue
        seen[id(each)] = each
        to_see += gc.get_referents(each)
    return [each for each in seen.values() if isinstance(each, kind) and each is not thing]
