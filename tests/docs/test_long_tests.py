"""tests/support/long_tests.py names functions that exist, and leaves the rest to `make test`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.long_tests import LONG, is_long, runs_now, stays

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", LONG)
def test_every_name_begins_a_function(file):
    functions = re.findall(r"^def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"), re.M)
    for beginning in LONG[file]:
        assert any(name.startswith(beginning) for name in functions), beginning


def test_each_test_runs_in_one_of_the_two_targets(monkeypatch):
    file, *_ = LONG
    names = [f"{file}::{LONG[file][0]}[{case}]" for case in range(100)] + ["tests/x.py::test_x"]
    monkeypatch.delenv("UMPC_AUDIT_RUNS", raising=False)
    monkeypatch.delenv("UMPC_LONG", raising=False)
    usual = {name for name in names if runs_now(name)}
    monkeypatch.setenv("UMPC_LONG", "1")
    long = {name for name in names if runs_now(name)}
    assert usual | long == set(names) and not usual & long
    assert "tests/x.py::test_x" in usual and 0 < len(usual) < 40
    monkeypatch.setenv("UMPC_AUDIT_RUNS", "1")
    assert all(runs_now(name) for name in names)
    assert is_long(names[0]) and not stays(f"{file}::{LONG[file][0]}")
