"""The module map in the docstring of every package is a table of exactly its files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import umpc

ROOT = Path(umpc.__file__).parents[1]
PACKAGES = {
    path.parent.relative_to(ROOT).as_posix(): path
    for folder in ("umpc", "umpc_papers", "bench", "reproduction", "spec")
    for path in sorted((ROOT / folder).rglob("__init__.py"))
    if path.parent.name != "v1"
}
OTHER = (".proto", "v1", "pictures")
"""Ends of names that a map has besides modules and packages."""
ROW = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)


def mapped(path: Path) -> list[str]:
    """The names in the first column of the docstring's tables."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    cells = ROW.findall(docstring)
    return [name.rstrip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def contents(folder: Path) -> set[str]:
    """The files and packages of a folder."""
    files = {path.name for path in folder.glob("*.py") if path.name != "__init__.py"}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return files | packages - {"v1"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_map_of_a_package_lists_exactly_its_files(package):
    path = PACKAGES[package]
    found = [name for name in mapped(path) if not name.endswith(OTHER)]
    assert sorted(found) == sorted(contents(path.parent))
