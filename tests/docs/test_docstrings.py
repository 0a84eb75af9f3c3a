"""Docstrings are plain sentences: none has a sentence that begins as a riddle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import umpc

ROOT = Path(umpc.__file__).parents[1]
FOLDERS = ("umpc", "umpc_papers", "bench", "reproduction", "spec", "tests", "native", "docs")
SENTENCE = re.compile(r"(?<=[.:?!])\s+|\n\s*\n")
RIDDLE = re.compile(r"(?:What|The same|As|Of|So many)\b")
POSSIBLE = re.compile(rf"""(?:["']|[.:?!]\s|\n\s*\n)\s*{RIDDLE.pattern}""")
"""Without a match, a file has no such sentence, and need not be parsed."""


def docstrings(source: str) -> Iterator[str]:
    """The docstrings of a file, and the texts that describe a constant or an attribute."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            is_text = isinstance(statement, ast.Expr) and isinstance(value, ast.Constant)
            if is_text and isinstance(value.value, str):
                yield value.value


def riddles(source: str) -> list[str]:
    """Sentences of docstrings that begin with a word of `RIDDLE`."""
    if not POSSIBLE.search(source):
        return []
    sentences = (
        sentence.strip()
        for docstring in docstrings(source)
        for sentence in SENTENCE.split(docstring)
    )
    return [sentence for sentence in sentences if RIDDLE.match(sentence)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_are_plain_sentences(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    found = {
        path.relative_to(ROOT).as_posix(): bad
        for path in files
        if (bad := riddles(path.read_text(encoding="utf-8")))
    }
    assert files and found == {}


def astray(source: str) -> list[int]:
    """The lines of a module's texts that describe nothing: no assignment stands right above."""
    body = ast.parse(source).body
    return [
        text.lineno
        for above, text in pairwise(body)
        if isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
        and not isinstance(above, ast.Assign | ast.AnnAssign | ast.AugAssign)
    ]


@pytest.mark.parametrize("folder", ["umpc", "umpc_papers", "spec", "bench", "reproduction"])
def test_a_text_stands_below_what_it_describes(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    sources = {path: path.read_text(encoding="utf-8") for path in files if "_pb2" not in path.name}
    assert (
        sources and {path.name: at for path, text in sources.items() if (at := astray(text))} == {}
    )
    assert astray('A = 1\n"""What A is."""\n"""What B was."""\n') == [3]


@pytest.mark.parametrize("begin", ["What", "The same", "As", "Of", "So many"])
def test_a_riddle_is_found_wherever_it_stands(begin):
    assert riddles(f'"""{begin} x."""') == [f"{begin} x."]
    assert riddles(f'class A:\n    """First. {begin} x."""\n    b = 1\n    """{begin} y."""') == [
        f"{begin} x.",
        f"{begin} y.",
    ]
    assert riddles(f'"""{begin}ide is another word."""\nx = "{begin} no docstring"') == []
