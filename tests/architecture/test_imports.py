"""docs/architecture.md: the layers of the code, read from the source of every file."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import umpc
from tests.architecture.rules import IO, MAY_IMPORT, NEVER, SANS_IO, SHELLS, WIRE
from umpc.protocols.registry import GROUP, PROTOCOLS, own_points

ROOT = Path(umpc.__file__).parent
GENERATED = ("umpc/proto/v1/umpc_pb2.py", "umpc/proto/v1/umpc_pb2_grpc.py")
FILES = {
    path.relative_to(ROOT.parent).as_posix(): path
    for folder in (ROOT, ROOT.parent / "umpc_papers")
    for path in sorted(folder.rglob("*.py"))
}


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree, which is read once."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> set[str]:
    """Every module or name that a file imports, also inside functions and for type checkers."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def all_imports() -> dict[str, set[str]]:
    """File → its imports. Read once, when the first test asks."""
    return {name: imports(path) for name, path in FILES.items()}


def within(name: str, allowed: tuple[str, ...], separator: str = ".") -> bool:
    return any(
        name == entry or name.startswith(entry.rstrip(separator) + separator) for entry in allowed
    )


def row(file: str) -> str:
    fitting = [
        entry
        for entry in MAY_IMPORT
        if file == entry or (entry.endswith("/") and file.startswith(entry))
    ]
    assert fitting, f"{file} has no row in the import table: add one"
    return max(fitting, key=len)


def file_of(name: str) -> str | None:
    """The file of a module or of the module that a name is from; None outside umpc."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        stem = "/".join(parts[:end])
        for file in (f"{stem}.py", f"{stem}/__init__.py"):
            if file in FILES:
                return file
    return None


@cache
def graph() -> dict[str, set[str]]:
    """File → the files of umpc that it imports."""
    return {
        file: {target for name in names if (target := file_of(name)) and target != file}
        for file, names in all_imports().items()
    }


@cache
def reached(file: str) -> frozenset[str]:
    """All files that a file imports, directly or through others."""
    found: set[str] = set()
    waiting = [file]
    while waiting:
        for target in graph()[waiting.pop()]:
            if target not in found:
                found.add(target)
                waiting.append(target)
    return frozenset(found)


def test_a_file_imports_only_what_its_row_allows():
    stdlib = sys.stdlib_module_names
    wrong = [
        f"{file}: {name}"
        for file, names in all_imports().items()
        for name in sorted(names)
        if name.split(".")[0] not in stdlib and not within(name, MAY_IMPORT[row(file)])
    ]
    assert wrong == []


def test_every_row_of_the_table_has_files():
    assert {row(file) for file in FILES} == set(MAY_IMPORT)


def test_no_import_is_circular():
    assert [file for file in FILES if file in reached(file)] == []


NODE_SIDES = [
    file
    for file in FILES
    if file.startswith(("umpc/protocols/", "umpc_papers/")) and "node" in Path(file).name
]


@pytest.mark.parametrize("file", NODE_SIDES)
def test_a_node_side_reaches_no_coordinator_side(file):
    assert [each for each in reached(file) if "coordinator" in each] == []


def test_there_are_node_sides():
    assert len(NODE_SIDES) >= 6


def test_raw_records_leave_through_one_folder_only():
    users = {file for file in FILES if "umpc_papers/central/columns.py" in graph()[file]}
    assert users == {"umpc_papers/central/messages.py"}
    users = {file for file in FILES if "umpc_papers/central/messages.py" in graph()[file]}
    assert users and all(user.startswith("umpc_papers/central/") for user in users)


def test_no_file_but_the_registry_imports_a_protocol_by_its_folder():
    """A file of umpc outside `umpc/protocols`; but files of people serve one protocol alone."""
    protocols = ROOT / "protocols"
    folders = [path.parent.name for path in protocols.glob("*/__init__.py")]
    folders.remove("base")
    folders.remove("people")  # it has processes of its own: people's door, their dealer, a store
    assert len(folders) >= 3
    found = [
        f"{file}: {target}"
        for file, targets in graph().items()
        for target in targets
        if not file.startswith(("umpc/protocols/", "umpc_papers/"))
        and not ("/people" in file and target.startswith("umpc/protocols/people/"))
        and within(target, tuple(f"umpc/protocols/{folder}" for folder in folders), "/")
    ]
    assert found == []


def test_umpc_names_no_protocol_of_another_package():
    """Neither by an import nor by a word, also in comments and help texts."""
    of_umpc = [file for file in FILES if file.startswith("umpc/")]
    assert imported_from(of_umpc, ("umpc_papers",)) == []
    folders = {path.parent.name for path in (ROOT.parent / "umpc_papers").glob("*/__init__.py")}
    words = {"umpc_papers", *own_points(GROUP), *folders} - {
        "central",
        "local",
        "shuffler",
        "training",
    }
    assert {"ghazi-shuffle", "gopa", "hajek_grid"} <= words
    wanted = re.compile(rf"(?<![\w-])({'|'.join(sorted(words))})(?![\w-])", re.IGNORECASE)
    texts = {file: FILES[file].read_text(encoding="utf-8") for file in of_umpc}
    assert [file for file, text in texts.items() if wanted.search(text)] == []


def names_compared(file: str) -> list[str]:
    """The names of protocols that a file has as text of their own, outside docstrings."""
    # also a command, keys of files and of reports, and tables
    names = set(PROTOCOLS) - {"people", "linked", "overlap", "counts"}
    return [
        f"{file}:{node.lineno}: {node.value!r}"
        for node in nodes_of(FILES[file])
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]


def test_no_file_outside_the_protocols_knows_a_protocol_by_its_name():
    outside = [file for file in FILES if not within(file, ("umpc/protocols", "umpc_papers"), "/")]
    assert [found for file in outside for found in names_compared(file)] == []


def test_a_name_that_is_compared_would_be_found():
    assert names_compared("umpc/protocols/registry.py")


@pytest.mark.parametrize("process", ["node", "dealer", "coordinator"])
def test_the_processes_never_import_each_other_nor_the_command(process):
    others = tuple(
        f"umpc.{name}" for name in ("node", "dealer", "coordinator", "cli") if name != process
    )
    files = [file for file in FILES if file.startswith(f"umpc/{process}/")]
    inside = {file: all_imports()[file] for file in files}
    assert inside and not [
        f"{file}: {name}"
        for file, names in inside.items()
        for name in names
        if within(name, others)
    ]


def test_nothing_but_the_command_imports_the_command():
    """The command is made of the Python interface, and nothing is made of the command."""
    outside = [file for file in FILES if file.startswith("umpc/") and "/cli/" not in file]
    assert imported_from(outside, ("umpc.cli",)) == []
    assert imported_from(["umpc/cli/main.py", "umpc/cli/demo.py"], ("umpc.cli",))


def test_grpc_is_imported_in_transport_and_generated_code_only():
    found = [
        file
        for file, names in all_imports().items()
        if any(within(name, ("grpc", "grpc_tools")) for name in names)
    ]
    assert all(file.startswith("umpc/transport/") or file in GENERATED for file in found), found


def test_only_the_shells_use_the_wire():
    for file, names in all_imports().items():
        used = sorted(name for name in names if within(name, WIRE))
        assert not used or within(file, SHELLS, "/"), f"{file} is no shell but imports {used}"


def imported_from(files: list[str], names: tuple[str, ...]) -> list[str]:
    """The imports of these files that are among the names."""
    return [
        f"{file}: {name}" for file in files for name in all_imports()[file] if within(name, names)
    ]


def test_files_without_io_import_no_clock_no_network_no_randomness():
    files = [file for file in FILES if within(file, SANS_IO, "/")]
    assert len(files) > 100 and imported_from(files, IO) == []


def test_no_file_imports_an_insecure_random_source_or_code_from_bytes():
    assert imported_from(list(FILES), NEVER) == []


def uses(path: Path, names: tuple[str, ...]) -> list[str]:
    """Attributes such as np.random and calls such as eval(…), wherever they stand."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Name) and node.id in ("eval", "exec", "__import__"):
            found.append(f"{node.id}, line {node.lineno}")
        if isinstance(node, ast.Attribute) and ast.unparse(node).replace("np.", "numpy.") in names:
            found.append(f"{ast.unparse(node)}, line {node.lineno}")
    return found


def test_no_file_uses_weak_randomness_or_runs_text():
    assert {file: used for file, path in FILES.items() if (used := uses(path, NEVER))} == {}


def test_the_readers_of_this_file_see_what_they_must(tmp_path):
    """A file that breaks every rule is caught by each of them."""
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import grpc, random\nfrom umpc.node.budget.ledger import Ledger\n"
        "from umpc.study import document\nimport numpy as np\n"
        "def f():\n    import pickle\n    from umpc.transport.tls import grpc as g\n"
        "    return eval('1'), np.random.default_rng()\n"
    )
    found = imports(bad)
    assert [name for name in sorted(found) if not within(name, ("numpy",))] == [
        "grpc",
        "pickle",
        "random",
        "umpc.node.budget.ledger.Ledger",
        "umpc.study.document",
        "umpc.transport.tls.grpc",
    ]
    assert {name for name in found if within(name, NEVER)} == {"random", "pickle"}
    assert [use.split(",")[0] for use in uses(bad, NEVER)] == ["eval", "np.random"]
    assert any(within(name, WIRE) for name in found) and any(within(name, IO) for name in found)
    assert file_of("umpc.node.budget.ledger.Ledger") == "umpc/node/budget/ledger.py"
