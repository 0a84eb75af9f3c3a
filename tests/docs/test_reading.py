"""docs/reading.md: each function that it names is found by import, each file is there."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`((?:umpc|spec)(?:\.\w+)+)`", PAGE)


def found(name: str) -> object:
    """Import a dotted name: a module, and then attributes. Raises: AttributeError."""
    first, *parts = name.split(".")
    thing, module = import_module(first), first
    for part in parts:
        module += f".{part}"
        is_module = hasattr(thing, "__path__") and find_spec(module)
        thing = import_module(module) if is_module else getattr(thing, part)
    return thing


@pytest.mark.parametrize("name", NAMES)
def test_each_function_exists_and_says_what_it_does(name):
    assert found(name).__doc__


def test_eleven_functions_have_a_twin_in_the_specification():
    rows = re.findall(r"^\| (\d+) \| `umpc\.[\w.]+` \| `spec\.[\w.]+` \|", PAGE, re.MULTILINE)
    assert rows == [str(number) for number in range(1, 12)]


def test_the_files_of_the_specification_exist():
    named = {each for row in re.findall(r"`spec`: (.*?) \|", PAGE) for each in row.split("`")[1::2]}
    assert named and all((ROOT / "spec" / each).is_file() for each in named)


def test_a_name_that_is_gone_is_noticed():
    with pytest.raises(AttributeError):
        found("umpc.study.attempt.check_nobody")
