"""Programs that no test imports, such as a container's, name only what the package has.

They run in containers, in benchmarks or when somebody writes documents. So a name that has moved
would be missed until then.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "deploy", "docs", "native", "reproduction")
OURS = ("umpc.", "umpc_papers.")


def missing_names(program: str) -> list[str]:
    """Every name that the text of a program imports from our packages and that is not there."""
    missing = []
    for node in ast.walk(ast.parse(program)):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(OURS):
            continue
        module = import_module(node.module)
        for alias in node.names:
            submodule = Path(module.__file__).parent / f"{alias.name}.py"
            if not hasattr(module, alias.name) and not submodule.exists():
                missing.append(f"{node.module}.{alias.name}")
    return missing


def test_programs_beside_the_package_import_names_that_exist():
    programs = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert ROOT / "deploy" / "container.py" in programs
    found = {path.name: missing_names(path.read_text(encoding="utf-8")) for path in programs}
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_a_name_that_has_moved_is_found():
    assert missing_names("def f():\n    from umpc.cli.table import lung_cancer\n") == [
        "umpc.cli.table.lung_cancer"
    ]
    assert missing_names("from umpc.cli import table\nfrom umpc.errors import RangeError") == []
