"""docs/decisions/0001: who may import whom, read from the source of every file."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import umpc

ROOT = Path(umpc.__file__).parent
GENERATED = ("umpc/proto/v1/umpc_pb2.py", "umpc/proto/v1/umpc_pb2_grpc.py")
FILES = {path.relative_to(ROOT.parent).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}

PROCESS = (
    "numpy",
    "umpc.__version__",
    "umpc.study.document",
    "umpc.protocols.u_mpc.noise_binding",
    "umpc.failpoints",
    "umpc.errors",
)
PROCESS += ("umpc.ustat", "umpc.mpc", "umpc.proto", "umpc.transport")

MAY_IMPORT = {
    "umpc/__init__.py": (),
    "umpc/errors.py": (),
    "umpc/failpoints.py": (),
    "umpc/ustat/": ("numpy", "umpc.ustat", "umpc.errors"),
    "umpc/study/document.py": (
        "msgspec",
        "umpc.__version__",
        "umpc.ustat",
        "umpc.errors",
        "umpc.crypto.prg",
        "umpc.studies",
    ),
    "umpc/studies/": (
        "msgspec",
        "umpc.study.document",
        "umpc.studies",
        "umpc.ustat",
        "umpc.errors",
    ),
    "umpc/mpc/masked/native.py": ("umpc_native",),
    "umpc/mpc/": (
        "numpy",
        "cryptography",
        "Crypto.PublicKey",
        "umpc.mpc",
        "umpc.ustat",
        "umpc.study.document",
        "umpc.errors",
    ),
    "umpc/dp/": ("numpy", "flint", "umpc.dp", "umpc.errors"),
    "umpc/dp/local/": ("numpy", "flint", "umpc.dp", "umpc.ustat", "umpc.errors"),
    "umpc/dp/central/": ("numpy", "flint", "umpc.dp", "umpc.ustat", "umpc.errors"),
    "umpc/protocols/u_mpc/noise_binding.py": ("umpc.dp", "umpc.mpc", "umpc.study.document"),
    "umpc/protocols/": (
        "numpy",
        "umpc.dp",
        "umpc.study.frames",
        "umpc.crypto.prg",
        "umpc.protocols",
        "umpc.study.document",
        "umpc.studies",
        "umpc.ustat",
        "umpc.errors",
    ),
    "umpc/proto/v1/": ("google.protobuf", "grpc", "umpc.proto.v1"),
    "umpc/proto/": (
        "google.protobuf",
        "umpc.proto",
        "umpc.errors",
        "umpc.study.messages",
        "umpc.study.frames",
        "umpc.study.sizes.Member",
    ),
    "umpc/transport/": ("grpc", "cryptography", "umpc.transport", "umpc.errors", "umpc.proto"),
    "umpc/node/": (
        *PROCESS,
        "duckdb",
        "cryptography.hazmat",
        "cryptography.exceptions",
        "umpc.dp",
        "umpc.protocols",
        "umpc.studies",
        "umpc.node",
    ),
    "umpc/dealer/": (*PROCESS, "umpc.dealer"),
    "umpc/shuffler/": (*PROCESS, "umpc.protocols", "umpc.shuffler"),
    "umpc/coordinator/": (
        *PROCESS,
        "msgspec",
        "umpc.protocols.local.estimate",
        "umpc.protocols",
        "umpc.studies",
        "umpc.coordinator",
    ),
    "umpc/simulation.py": (
        "numpy",
        "umpc.coordinator",
        "umpc.dealer",
        "umpc.shuffler",
        "umpc.node",
        "umpc.mpc",
        "umpc.study.document",
    ),
    "umpc/planning/error.py": (
        "numpy",
        "msgspec",
        "umpc.protocols.u_mpc.noise_binding",
        "umpc.mpc",
        "umpc.protocols",
        "umpc.study.document",
        "umpc.studies",
        "umpc.ustat",
        "umpc.errors",
    ),
    "umpc/planning/seconds.py": (
        "msgspec",
        "umpc.dealer",
        "umpc.protocols.ghazi_shuffle.split_mix",
        "umpc.mpc",
        "umpc.protocols",
        "umpc.simulation",
        "umpc.study.document",
        "umpc.protocols.central.settings",
        "umpc.ustat",
    ),
    "umpc/cli/": (
        "numpy",
        "msgspec",
        "click",
        "rich",
        "sklearn.datasets",
        "cryptography.x509",
        "umpc",
    ),
}
"""Folder or file → the modules that it may import, beside the standard library. The longest entry
that fits a file counts.
"""

SHELLS = (
    "umpc/node/server.py",
    "umpc/node/attempts/delivery.py",
    "umpc/node/attempts/links.py",
    "umpc/node/attempts/material.py",
    "umpc/node/attempts/peers.py",
    "umpc/dealer/server.py",
    "umpc/coordinator/client.py",
    "umpc/coordinator/links.py",
    "umpc/coordinator/shufflers.py",
    "umpc/shuffler/server.py",
    "umpc/cli/serve.py",
    "umpc/transport/",
)
"""Only these may speak gRPC, and all but transport take it from umpc.transport."""

WIRE = (
    "umpc.transport.tls",
    "umpc.transport.channels",
    "umpc.transport.services",
    "umpc.transport.status",
)
SANS_IO = (
    "umpc/ustat/",
    "umpc/mpc/",
    "umpc/dp/",
    "umpc/protocols/",
    "umpc/studies/",
    "umpc/protocols/gopa/node.py",
    "umpc/protocols/base/seed_agreement.py",
    "umpc/protocols/u_mpc/node.py",
    "umpc/protocols/base/one_message_node.py",
    "umpc/protocols/ghazi_rounds/node.py",
    "umpc/protocols/ghazi_shuffle/node.py",
    "umpc/node/sessions.py",
    "umpc/dealer/session.py",
    "umpc/protocols/ghazi_shuffle/shuffler.py",
    "umpc/protocols/u_mpc/coordinator.py",
    "umpc/protocols/base/one_message_coordinator.py",
    "umpc/protocols/ghazi_shuffle/coordinator.py",
)
IO = ("asyncio", "time", "socket", "random", "secrets", "os", "threading", "datetime", "subprocess")
NEVER = ("random", "numpy.random", "pickle", "marshal", "shelve", "cPickle", "dill")


def imports(path: Path) -> set[str]:
    """Return every module or name that a file imports, also inside functions.

    "umpc" itself is given only as "umpc.name".
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


IMPORTS = {name: imports(path) for name, path in FILES.items()}


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


def violations(file: str, names: set[str], allowed: tuple[str, ...]) -> list[str]:
    stdlib = sys.stdlib_module_names
    return [
        f"{file}: {n}"
        for n in sorted(names)
        if n.split(".")[0] not in stdlib and not within(n, allowed)
    ]


@pytest.mark.parametrize("file", FILES)
def test_a_file_imports_only_what_its_row_allows(file):
    assert violations(file, IMPORTS[file], MAY_IMPORT[row(file)]) == []


def test_every_row_of_the_table_has_files():
    assert {row(file) for file in FILES} == set(MAY_IMPORT)


def test_noise_does_not_depend_on_the_local_protocols():
    """They are for comparison: the main protocol's foundations must not import them.

    Neither must the statistic.
    """
    mine = {file: names for file, names in IMPORTS.items() if row(file) == "umpc/dp/"}
    assert mine and not [
        f"{f}: {n}" for f, names in mine.items() for n in names if within(n, ("umpc.dp.local",))
    ]


def test_only_the_central_protocols_themselves_use_them():
    """Code that sees all sites' records is reached through one file, for protocol = "central"."""
    users = ("umpc/dp/central/", "umpc/protocols/central/messages.py", "umpc/cli/")
    found = [
        file
        for file, names in IMPORTS.items()
        if any(within(name, ("umpc.dp.central",)) for name in names)
    ]
    assert found and all(within(file, users, "/") for file in found), found
    users = [
        file
        for file, names in IMPORTS.items()
        if any(within(name, ("umpc.protocols.central.messages",)) for name in names)
    ]
    planners = {
        "umpc/planning/error.py",
        "umpc/planning/alternatives.py",
        "umpc/planning/prediction.py",
    }
    assert set(users) - planners == {"umpc/protocols/local/messages.py"}, (
        "a node gets it only through the seam"
    )


@pytest.mark.parametrize("process", ["node", "dealer", "shuffler", "coordinator"])
def test_the_processes_never_import_each_other_nor_the_command(process):
    others = tuple(
        f"umpc.{name}"
        for name in ("node", "dealer", "shuffler", "coordinator", "cli")
        if name != process
    )
    inside = {file: names for file, names in IMPORTS.items() if file.startswith(f"umpc/{process}/")}
    assert inside and not [
        f"{f}: {n}" for f, names in inside.items() for n in names if within(n, others)
    ]


def test_grpc_is_imported_in_transport_and_generated_code_only():
    found = [
        file
        for file, names in IMPORTS.items()
        if any(within(name, ("grpc", "grpc_tools")) for name in names)
    ]
    assert all(file.startswith("umpc/transport/") or file in GENERATED for file in found), found


def test_only_the_shells_use_the_wire():
    for file, names in IMPORTS.items():
        used = sorted(name for name in names if within(name, WIRE))
        assert not used or within(file, SHELLS, "/"), f"{file} is no shell but imports {used}"


@pytest.mark.parametrize("file", [file for file in FILES if within(file, SANS_IO, "/")])
def test_files_without_io_import_no_clock_no_network_no_randomness(file):
    assert not [name for name in IMPORTS[file] if within(name, IO)]


def uses(path: Path, names: tuple[str, ...]) -> list[str]:
    """Attributes such as np.random and calls such as eval(…), wherever they stand."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and node.id in ("eval", "exec", "__import__"):
            found.append(f"{node.id}, line {node.lineno}")
        if isinstance(node, ast.Attribute) and ast.unparse(node).replace("np.", "numpy.") in names:
            found.append(f"{ast.unparse(node)}, line {node.lineno}")
    return found


@pytest.mark.parametrize("file", FILES)
def test_nobody_uses_weak_randomness_pickle_or_runs_text(file):
    assert not [name for name in IMPORTS[file] if within(name, NEVER)]
    assert uses(FILES[file], NEVER) == []


def test_the_readers_of_this_file_see_what_they_must(tmp_path):
    """A file that breaks every rule is caught by each of them."""
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import grpc, random\nfrom umpc.node.budget.ledger import Ledger\n"
        "from umpc import study\nimport numpy as np\n"
        "def f():\n    import pickle\n    from umpc.transport.tls import grpc as g\n"
        "    return eval('1'), np.random.default_rng()\n"
    )
    found = imports(bad)
    assert violations("bad.py", found, ("numpy",)) == [
        "bad.py: grpc",
        "bad.py: umpc.node.budget.ledger.Ledger",
        "bad.py: umpc.study.document",
        "bad.py: umpc.transport.tls.grpc",
    ]
    assert {name for name in found if within(name, NEVER)} == {"random", "pickle"}
    assert [use.split(",")[0] for use in uses(bad, NEVER)] == ["eval", "np.random"]
    assert any(within(name, WIRE) for name in found) and any(within(name, IO) for name in found)
