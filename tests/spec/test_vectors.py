"""The files of vectors are those of today's specification, which is small and uses no numpy."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from spec.__main__ import FOLDER, PARTS, text_of
from tests.spec.replaying import INSTEAD, NOT_REPLAYED, ONLY_IN_UMPC
from umpc.testing import CHECKS, without

FILES = sorted(FOLDER.parent.glob("*.py"))
VERIFIED = (
    "field.py",
    "linear_proof.py",
    "verified_by_few.py",
    "verified_checks.py",
    "verified_forms.py",
    "verified_grid.py",
    "verified_messages.py",
    "verified_triples.py",
)
"""The files of the grid when nodes lie."""
PEOPLE = ("people.py", "people_messages.py", "people_verified.py", "point_functions.py")
LINKED, OVERLAP, COUNTS = ("linked.py",), ("overlap.py",), ("counts.py",)
SIGN_IN = ("sign_in.py",)
BUDGETS = {VERIFIED: 1040, PEOPLE: 730, LINKED: 155, OVERLAP: 121, COUNTS: 96, SIGN_IN: 28}
"""Files that have a budget of lines of their own."""
PAPER = re.compile(r"[A-Z]\w+(?:, [A-Z]\w+)* (?:& [A-Z]\w+ )?(?:et al\. )?(?:19|20)\d\d\b")
"""Authors and year, as in "Bonawitz et al. 2017" or "Boyle, Gilboa & Ishai 2016"."""


@pytest.mark.parametrize("part", PARTS)
def test_a_file_of_vectors_is_what_the_specification_computes(part):
    assert (FOLDER / f"{part}.json").read_text("utf-8") == text_of(part)


def test_every_part_has_a_file_and_a_replay():
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(PARTS)
    assert all(Path(__file__).with_name(f"test_{part}.py").exists() for part in PARTS)


def test_the_specification_is_short():
    """All lines count, blank ones too. `cases/` has the vectors' inputs, and is no protocol."""
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert max(lengths.values()) < 300, lengths
    for names, most in BUDGETS.items():
        assert sum(lengths.pop(name) for name in names) < most, names
    assert sum(lengths.values()) < 2600, lengths


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_specification_is_plain_python(path):
    """Neither numpy, nor umpc, nor a source of randomness."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    assert not names & {"numpy", "umpc", "random", "secrets", "os", "flint", "time"}


def test_the_papers_that_the_specification_names_are_in_the_list_of_papers():
    papers = FOLDER.parents[1].joinpath("docs", "papers.md").read_text("utf-8")
    named = {key for path in FILES for key in PAPER.findall(path.read_text("utf-8"))}
    assert len(named) > 15 and not [key for key in named if key not in papers]


def test_every_check_has_a_bad_vector_and_every_bad_vector_a_check():
    rows = [json.loads(path.read_text("utf-8"))["bad"] for path in FOLDER.iterdir()]
    checks = {vector["check"] for each in rows for vector in each}
    assert checks - INSTEAD.keys() | ONLY_IN_UMPC == CHECKS.keys()
    names = {vector["name"] for each in rows for vector in each}
    assert INSTEAD.keys() | NOT_REPLAYED <= checks | names
    assert set(INSTEAD.values()) <= CHECKS.keys()


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_can_be_taken_out_and_comes_back(check):
    with without(check):
        pass
