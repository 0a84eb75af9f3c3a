"""docs/papers.md, "Every result, and where it is": what it names exists, none missing."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import click
import pytest

from reproduction.baselines.__main__ import NAMES
from reproduction.figures.catalogue import chosen
from umpc.cli.main import umpc
from umpc.coordinator.studyfile_entries import describe_keys
from umpc.dp.composition import COMPOSITIONS
from umpc.node.policy import KINDS
from umpc.protocols.registry import PROTOCOLS, possible_values
from umpc.study.settings import keys_of
from umpc.ustat.sampling import SAMPLINGS
from umpc.ustat.statistics import LIBRARY

ROOT = Path(__file__).parents[2]
HEADING = "## Every result, and where it is"
COLUMNS = ("result", "where", "reach", "test")
NUMBERED = {
    "Bell et al. 2020": {
        "Algorithm": "1 2 3",
        "Section": "5 6 7",
        "Theorem": "1 2 3 4 5",
        "Lemma": "1 2 3 4 5 6",
        "Corollary": "1 2 3 4 5",
        "Remark": "1 2 3 4 5 6",
        "Definition": "1 2 3",
        "Figure": "1 2 3 4 5 6 7",
        "Table": "1 2",
    },
    "Chaudhuri et al. 2024": {
        "Algorithm": "1 2 3 4 5",
        "Wrapper": "1",
        "Theorem": "1 2 3 4 5 6 A.1",
        "Proposition": "1 2 3",
        "Corollary": "1 2",
        "Lemma": "1 2 3 4 5 6 A.1 A.2 A.3 A.4 A.16 A.17 A.18",
        "Remark": "1 2 3 4 5 6 7 A.8",
        "Definition": "1 2 3",
        "Application": "3a 3b 3c",
        "Section": "6",
    },
    "Sinh & Ramon 2025": {
        "Algorithm": "1",
        "Protocol": "3.1 B.1",
        "Claim": "D.1 D.2",
        "Section": "A.1 A.5.1 A.5.2 A.5.3 A.5.4 E.1.1 E.1.2",
        "Remark": "B.1",
        "Lemma": "A.5 A.6 C.1 C.2 C.3 D.3",
        "Definition": "2.1 A.1 A.2 A.3 A.4",
        "Figure": "1 2 3 4 5 6",
        "Table": "1 2 3",
    },
    "Bellet 2021 (slides)": {"GOPA's": "verification"},
}
"""The numbered results of each paper that have a figure, an algorithm or a meaning of their own."""


def tables() -> dict[str, list[list[str]]]:
    """The rows of each paper's table, as lists of cells."""
    text = (ROOT / "docs/papers.md").read_text(encoding="utf-8").split(HEADING + "\n", 1)[1]
    found = {}
    for part in text.split("\n### ")[1:]:
        title, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        assert tuple(rows[0]) == COLUMNS, title
        found[title] = rows[2:]
    return found


TABLES = tables()


def reached(written: str) -> bool:
    """Whether a command, or a study's or site's key, exists."""
    words = written.split()
    if words[0] == "umpc":
        command: click.Command = umpc
        context = click.Context(umpc)
        for word in words[1:]:
            if word.startswith("-"):
                return any(word in option.opts for option in command.params)
            found = command.get_command(context, word) if isinstance(command, click.Group) else None
            if found is None:
                return False
            command = found
        return True
    if words[:2] == ["python", "-m"]:
        if importlib.util.find_spec(words[2]) is None:
            return False
        if words[2] == "reproduction.figures":
            return bool(chosen(words[3:]))
        return set(words[3:]) <= set(NAMES)
    return key_exists(written)


def key_exists(written: str) -> bool:
    found = re.fullmatch(r'\[?([a-z_]+)\]?(?: = "(.*)")?', written)
    if not found:
        return False
    key, value = found.groups()
    choices = {"composition": COMPOSITIONS, "statistic": LIBRARY, "sampling": SAMPLINGS}
    if key in choices:
        return value in choices[key]
    if key in KINDS:
        return value in possible_values(key)
    of_protocols = any(key in keys_of(protocol.settings) for protocol in PROTOCOLS.values())
    return of_protocols or key in describe_keys()


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_file_command_and_key_exists_and_what_is_not_there_has_a_reason(paper):
    for row in TABLES[paper]:
        assert len(row) == len(COLUMNS), row
        for column, cell in zip(COLUMNS[1:], row[1:], strict=True):
            assert "library only" not in cell, row
            named = re.findall(r"`([^`]+)`", cell)
            if cell.startswith("none: "):
                assert len(cell.split()) >= 5, f"a reason is missing: {row}"
                continue
            assert named, f"{column} of {row} names nothing"
            for each in named:
                exists = reached(each) if column == "reach" else (ROOT / each).is_file()
                assert exists, f"{each!r}, {column} of {row[0]!r}, does not exist"
            if column == "test":
                assert all(Path(each).name.startswith("test_") for each in named), row


@pytest.mark.parametrize("paper", NUMBERED)
def test_no_numbered_result_is_missing(paper):
    results = " · ".join(row[0] for row in TABLES[paper])
    missing = [
        f"{kind} {number}"
        for kind, numbers in NUMBERED[paper].items()
        for number in numbers.split()
        if not re.search(rf"{kind} {re.escape(number)}(?![\w.])", results)
    ]
    assert not missing


def test_what_does_not_exist_is_found():
    assert not reached("umpc fly") and not reached("umpc plan --fly") and not reached("fly = 1")
    assert not reached("python -m reproduction.baselines fly")
    assert not reached("python -m bench.fly")
    assert not reached('protocol = "fly"') and not reached('composition = "fly"')
    assert reached("umpc plan --protocols") and reached('noise = "hajek"') and reached("[bins]")
