"""umpc.api.progress: a notebook's one line that changes, and every kind of standard error."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from umpc.api.progress import FORCED, Forecast, ProgressShow, may_be_terminal, notebook_display


@dataclass
class IPython:
    """The module, where this shell runs."""

    shell: Any

    def get_ipython(self) -> Any:
        return self.shell


class Notebook:
    """IPython's shell in a notebook."""

    kernel = object()


@dataclass
class Cell:
    """The module `IPython.display`, and the one output that a cell has."""

    shown: list[str] = field(default_factory=list)
    Pretty = str

    def display(self, text: str, display_id: bool) -> Cell:
        self.update(text)
        return self

    def update(self, text: str) -> None:
        self.shown.append(text)


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_notebook_has_one_line_that_changes(monkeypatch, capsys):
    cell = Cell()
    monkeypatch.setitem(sys.modules, "IPython", IPython(Notebook()))
    monkeypatch.setitem(sys.modules, "IPython.display", cell)
    with ProgressShow(clock=iter([0.0] * 9).__next__) as show:
        show.tell("prepare", 1, 2)
        show.tell("release", 2, 2)
    told = cell.shown
    assert told[0] == "starting" and told[1].startswith("prepare") and "1 of 2" in told[1]
    assert told[1].count("█") == 10 and told[2].count("█") == 20
    assert capsys.readouterr().err == ""


def test_the_nodes_that_are_waited_for_are_named_and_more_rarely_each_time(capsys):
    """A table that hangs showed `propose: 0 of 2` for 40 s, and no name."""
    now = [0.0]
    show = ProgressShow(clock=lambda: now[0], nodes=["north", "south"])
    for node in ("north", "south"):
        show.note(node, "connect", 1, 1)
        show.note(node, "propose", 0, 1)
    show.note("north", "propose", 1, 1)
    lines = []
    for second in range(1, 41):
        now[0] = float(second)
        show.name_silent()
        if told := capsys.readouterr().err:
            lines.append(told)
    assert [re.search(r"since (\d+) s", line)[1] for line in lines] == ["5", "10", "20", "40"]
    assert all(line.startswith("propose: waiting for south since") for line in lines)
    show.note("south", "propose", 1, 1)
    show.name_silent()
    assert capsys.readouterr().err == ""


def test_a_node_that_cannot_be_connected_is_named_and_many_are_counted(capsys):
    now = [0.0]
    show = ProgressShow(clock=lambda: now[0], nodes=[f"n{number}" for number in range(10)])
    now[0] = 6.0
    show.name_silent()
    assert "connect: waiting for n0, n1, n2, n3, n4, n5, n6, n7 and 2 more" in (
        capsys.readouterr().err
    )


def test_a_shell_without_a_kernel_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", IPython(object()))
    assert notebook_display() is None


class Writes:
    """A standard error that another program has replaced: it says nothing of a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self): ...


@pytest.mark.parametrize("kind", ["none", "replaced", "closed"])
def test_a_run_goes_on_without_a_usual_standard_error(kind, monkeypatch, capsys):
    closed = io.StringIO()
    closed.close()
    stderr = {"none": None, "replaced": Writes(), "closed": closed}[kind]
    monkeypatch.setattr(sys, "stderr", stderr)
    with ProgressShow(clock=iter([0.0] * 9).__next__) as show:
        show.tell("prepare", 0, 2)
        show.announce(Forecast(300.0, 1_234_567, 300 << 20))
    assert capsys.readouterr().out == "", "the result alone is on standard output"
    if kind == "replaced":
        assert "prepare: 0 of 2" in stderr.text and "about 5 min" in stderr.text


def test_a_terminal_has_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert may_be_terminal()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for name in FORCED:
        monkeypatch.delenv(name, raising=False)
    assert not may_be_terminal()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert may_be_terminal()
