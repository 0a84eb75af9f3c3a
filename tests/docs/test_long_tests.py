"""tests/support/long_tests.txt names functions that exist, and leaves the rest to `make test`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.long_tests import LINES, LONG, is_long, runs_now, stays

ROOT = Path(__file__).parents[2]
FILE, FUNCTION = "tests/ustat/test_sampling.py", "test_every_edge_is_equally_likely"
WHOLE = "tests/dp/test_poisson.py::test_the_law_is_poisson"


def test_every_name_begins_a_function():
    for file, beginnings in LONG.items():
        functions = re.findall(
            r"^(?:def|class) ([tT]est\w+)", (ROOT / file).read_text(encoding="utf-8"), re.M
        )
        for beginning in beginnings:
            name = beginning.partition("[")[0]
            assert any(function.startswith(name) for function in functions), beginning


def test_lines_are_sorted_and_none_stands_twice():
    lines = ["".join(line) for line in LINES]
    assert lines == sorted(set(lines))


def test_each_test_runs_in_one_of_the_two_targets(monkeypatch):
    cases = [f"[{case}]" for case in range(200)]
    names = [f"{FILE}::{FUNCTION}{case}" for case in cases] + ["tests/x.py::test_x"]
    names += [f"{WHOLE}{case}" for case in cases]
    monkeypatch.delenv("UMPC_AUDIT_RUNS", raising=False)
    monkeypatch.delenv("UMPC_LONG", raising=False)
    usual = {name for name in names if runs_now(name)}
    monkeypatch.setenv("UMPC_LONG", "1")
    long = {name for name in names if runs_now(name)}
    assert usual | long == set(names) and not usual & long
    assert "tests/x.py::test_x" in usual and 1 < len(usual) < 40
    assert not any(name.startswith(WHOLE) for name in usual)
    monkeypatch.setenv("UMPC_AUDIT_RUNS", "1")
    assert all(runs_now(name) for name in names)
    assert is_long(names[0]) and not stays(f"{FILE}::{FUNCTION}")
