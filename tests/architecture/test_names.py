"""A class name means one thing in the whole package."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import umpc

ROOT = Path(umpc.__file__).parent
TWINS = {"DealerStub", "HubStub", "NodeStub", "ShufflerStub"}
"""The generated stubs, and the types of their calls in umpc/transport/services.py."""


def classes(source: str) -> list[str]:
    """The names of all classes that a file defines, also inside functions and classes.

    Only statements are looked at, because a walk through every expression takes seconds.
    """
    found, statements = [], list(ast.parse(source).body)
    while statements:
        node = statements.pop()
        if isinstance(node, ast.ClassDef):
            found.append(node.name)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements += getattr(node, part, ())
    return found


def defined_twice(sources: Iterable[str]) -> set[str]:
    names = [name for source in sources for name in classes(source)]
    return {name for name in names if names.count(name) > 1}


def test_no_two_classes_have_the_same_name():
    found = defined_twice(path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))
    assert found == TWINS


def test_a_name_that_is_defined_twice_is_found():
    assert defined_twice(["class A: pass", "def f():\n    class A: pass", "class B: pass"]) == {"A"}
