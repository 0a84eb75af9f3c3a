"""umpc.api.progress in a notebook: one line that changes."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from umpc.api.progress import ProgressShow, notebook_display


def test_a_notebook_has_one_line_that_changes(monkeypatch, capsys):
    told = []
    cell = SimpleNamespace(update=told.append)
    shown = SimpleNamespace(Pretty=str, display=lambda text, display_id: told.append(text) or cell)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    with ProgressShow(clock=iter([0.0] * 9).__next__) as show:
        show.tell("prepare", 1, 2)
        show.tell("release", 2, 2)
    assert told[0] == "starting" and told[1].startswith("prepare") and "1 of 2" in told[1]
    assert told[1].count("█") == 10 and told[2].count("█") == 20
    assert capsys.readouterr().err == ""


def test_a_shell_without_a_kernel_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: object()))
    assert notebook_display() is None
