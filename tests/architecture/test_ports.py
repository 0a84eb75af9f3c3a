"""No test uses the port of a server that it has closed: another process may have it by then."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
OF_A_PORT = {"create_server", "socket", "bind", "getsockname", "setsockopt"}
"""The calls of a block that only looks for a free port."""


def names_called(node: ast.AST) -> set[str]:
    """The last parts of the names of all functions that are called inside."""
    calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    return {getattr(call, "attr", getattr(call, "id", "")) for call in calls}


def freed_ports(program: str) -> list[int]:
    """The lines at which a block looks for a free port, and closes it before anybody uses it."""
    blocks = [each for each in ast.walk(ast.parse(program)) if isinstance(each, ast.With)]
    found = []
    for block in blocks:
        calls = names_called(block)
        if calls <= OF_A_PORT and calls & {"create_server", "bind"} and "getsockname" in calls:
            found.append(block.lineno)
    return found


def test_a_port_is_kept_until_it_is_used():
    found = {}
    for path in TESTS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "getsockname" in text and (lines := freed_ports(text)):
            found[str(path.relative_to(TESTS))] = lines
    assert found == {}, "take a port of tests/support/ports.py"


def test_a_port_that_is_closed_before_its_use_is_found():
    look = "with socket.create_server(('', 0)) as free:\n    port = free.getsockname()[1]\n"
    assert freed_ports(look) == [1]
    assert freed_ports("with socket() as s:\n    s.bind(('', 0))\n    p = s.getsockname()\n") == [1]
    assert freed_ports(look + "    call(port)\n") == []
