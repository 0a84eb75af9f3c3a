"""The table in the docstring of `umpc.dp` names exactly its files."""

from __future__ import annotations

import re
from pathlib import Path

import umpc.dp


def test_the_map_lists_the_files():
    listed = set(re.findall(r"^\| `(\S+\.py)`", umpc.dp.__doc__, re.MULTILINE))
    folder = Path(umpc.dp.__file__).parent
    assert listed == {path.name for path in folder.glob("*.py")} - {"__init__.py"}
