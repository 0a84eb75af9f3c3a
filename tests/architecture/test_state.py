"""All state that outlives a study is in the table of docs/architecture.md, with its limit."""

from __future__ import annotations

import re
import textwrap
from functools import cache

import pytest

from tests.architecture import state

PAGE = state.ROOT / "docs" / "architecture.md"
OF_ONE_STUDY = {
    *("DealtAttempt", "Conductor", "FrameQueue", "HubRoute", "Mailbox"),
    *("MaterialReader", "MisfitFinder", "Numbering", "PeerLink"),
    *("ReadersWait", "RoundsAtCluster", "ShuffleRun", "RunCompute", "RunLinks"),
    *("RunningChunks", "Session", "Spool", "StreamReader"),
    *("_Gathered", "_PayloadsInOrder"),
}
"""Classes whose objects end with a study, a stream or a reading of the table."""
OF_ONE_COMMAND = {"Restoration", "_ProvenSums"}
UNBOUNDED = {
    "umpc/compute/executor.py:threads_of_process": "numbers of cores, one in a process",
    "umpc/crypto/signing.py:_scheme": "no argument",
    "umpc/mpc/masked/edge_layout.py:_little": "numpy's types of integers",
    "umpc/native/__init__.py:kinds": "no argument",
    "umpc/node/table/columns.py:shared_engine": "no argument",
    "umpc/study/settings.py:_keys_of": "types of settings, one for each protocol",
    "umpc/transport/addresses.py:_looking": "no argument",
}
"""Caches without a limit, and what bounds the number of their arguments."""
MOST_CACHED = 1 << 14


def rows() -> list[list[str]]:
    """The cells of the page's table, without its head."""
    lines = PAGE.read_text("utf-8").partition("| state |")[2].splitlines()[2:]
    end = next(number for number, line in enumerate(lines) if not line)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def listed() -> list[str]:
    return [name for row in rows() for name in re.findall(r"`([^`]+)`", row[0])]


@cache
def found() -> set[str]:
    """All that outlives a study, by class and attribute, or by the name in its module."""
    objects = {place.rpartition(":")[2] for place in state.of_objects()}
    short = OF_ONE_STUDY | OF_ONE_COMMAND
    objects = {name for name in objects if name.partition(".")[0] not in short}
    return objects | {place.rpartition(":")[2] for place in state.of_modules()}


def test_all_state_that_outlives_a_study_is_listed_once():
    names = listed()
    assert len(names) == len(set(names))
    assert found() - set(names) == set(), "say its limit and its end in docs/architecture.md"
    assert set(names) - found() == set(), "docs/architecture.md lists what is no more"


def test_every_row_has_a_limit_and_an_end():
    assert all(len(row) == 4 and all(row) for row in rows())


def test_the_classes_of_one_study_still_have_state():
    classes = {place.rpartition(":")[2].partition(".")[0] for place in state.of_objects()}
    assert classes >= OF_ONE_STUDY | OF_ONE_COMMAND


def test_every_cache_has_a_limit_or_few_arguments():
    caches = state.caches()
    assert {place for place, limit in caches.items() if not limit} == UNBOUNDED.keys()
    numbers = [eval(each, {}) for each in caches.values() if re.fullmatch(r"[\d <]+", each)]
    assert len(numbers) > 40 and max(numbers) <= MOST_CACHED


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A:\n def __init__(self):\n  self.b = {}\n def f(self):\n  self.b[1] = 2", {"A.b"}),
        ("class A:\n def __init__(self):\n  self.b = set()\ndef f(a):\n a.b.add(1)", {"A.b"}),
        (
            "class A:\n b: list = field(default_factory=list)\n def f(self):\n  del self.b[0]",
            {"A.b"},
        ),
        ("class A:\n def __init__(self):\n  self.b = [1, 2]", set()),
        ("B = {}\ndef f():\n B[1] = 2", {"B"}),
        ("B = {}\nB[1] = 2", set()),
        ("B = None\ndef f():\n global B\n B = 1", {"B"}),
        ("class A:\n B: ClassVar = set()\n def f(self):\n  A.B.add(1)", {"A.B"}),
        ("class A:\n def f(self):\n  self.b = 1\nC = A()", {"C"}),
        ("@cache\ndef f(): ...", {"f"}),
        ("@lru_cache(maxsize=None)\ndef f(): ...", {"f"}),
        ("@lru_cache\ndef f(): ...", set()),
    ],
)
def test_the_search_finds_state_of_every_form(monkeypatch, tmp_path, source, expected):
    folder = tmp_path / "umpc" / "node"
    folder.mkdir(parents=True)
    (folder / "new.py").write_text(textwrap.dedent(source))
    monkeypatch.setattr(state, "ROOT", tmp_path)
    unbounded = {place for place, limit in state.caches().items() if not limit}
    places = state.of_objects() | state.of_modules() | unbounded
    assert {place.removeprefix("umpc/node/new.py:") for place in places} == expected
