"""The first example of docs/python.md runs, and its last table names what a result has."""

from __future__ import annotations

import re
from pathlib import Path

import umpc

TEXT = (Path(umpc.__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")


def test_the_first_example_runs():
    example, *_ = re.findall(r"```python\n(import umpc.*?)```", TEXT, re.DOTALL)
    names: dict = {}
    exec(compile(example, "python.md", "exec"), names)
    assert -1 <= names["low"] < names["high"] <= 1
    for method in re.findall(
        r"`(?:result\.)?(\w+)(?:\(.*?\))?`", TEXT[TEXT.index("| `result.estimate") :]
    ):
        if method.startswith(
            ("estimate", "interval", "p_value", "errors", "plot", "to_", "report")
        ):
            assert hasattr(names["result"], method), method


def test_the_table_of_names_is_what_the_package_exports():
    named = set(re.findall(r"^\| `umpc\.(\w+)` \|", TEXT, re.MULTILINE))
    assert named == {"estimate", "local_consortium", "plan", "Study", "kernel", "Result"}
    assert all(hasattr(umpc, name) for name in named)
