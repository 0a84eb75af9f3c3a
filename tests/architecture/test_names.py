"""A class name means one thing in the whole package, and the contract uses public names only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

import umpc
import umpc.testing
import umpc_papers.testing

ROOT = Path(umpc.__file__).parent


def classes(source: str) -> list[str]:
    """The names of all classes that a file defines, also inside functions and classes.

    Only statements are looked at, because a walk through every expression takes seconds.
    """
    found, statements = [], list(ast.parse(source).body)
    while statements:
        node = statements.pop()
        if isinstance(node, ast.ClassDef):
            found.append(node.name)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements += getattr(node, part, ())
    return found


def defined_twice(sources: Iterable[str]) -> set[str]:
    names = [name for source in sources for name in classes(source)]
    return {name for name in names if names.count(name) > 1}


def test_no_two_classes_have_the_same_name():
    assert not defined_twice(path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))


def test_a_name_that_is_defined_twice_is_found():
    assert defined_twice(["class A: pass", "def f():\n    class A: pass", "class B: pass"]) == {"A"}


# --- one word for one thing (docs/glossary.md)

NAMED = {
    "link": "AskedLink EndedLink Links NodeLink PeerLink RunLinks ShufflerLink",
    "attempt": "AskedAttempt Attempt DealerlessAttempt DealtAttempt GridAttempt OverlapAttempt "
    "PairsAttempt PreparedAttempt PreparedAttempts SharedAttempt ShufflerAttempt "
    "WaitingAttempt",
    "run": "RunCompute RunContext RunLinks ShuffleRun",
    "session": "Session",
    "channel": "ChannelEnd ChannelLeaves Channels KeptChannel",
    "stream": "CoordinatorStream LeafStreams RpcStream ShakeStream ShufflerStream ShufflerStreams "
    "Stream StreamHeart StreamReader WordStream",
}
"""The classes whose names have one of the glossary's words that are easily mixed up.

Whoever adds a class here has read the word's row: the class is that thing, a part or several of it.
"""


def classes_by_word(names: Iterable[str]) -> dict[str, set[str]]:
    """The class names that hold each word of NAMED, also in the plural."""
    found: dict[str, set[str]] = {word: set() for word in NAMED}
    for name in names:
        for part in re.findall("[A-Z][a-z]*", name):
            word = part.lower().removesuffix("s")
            if word in found:
                found[word].add(name)
    return found


def test_a_class_has_a_word_of_the_glossary_only_if_it_is_that_thing():
    roots = [ROOT, Path(umpc_papers.__file__).parent]
    files = [file for root in roots for file in root.rglob("*.py") if "_pb2" not in file.name]
    names = [name for file in files for name in classes(file.read_text(encoding="utf-8"))]
    assert classes_by_word(names) == {word: set(few.split()) for word, few in NAMED.items()}


def test_the_glossary_has_a_row_for_each_of_these_words():
    glossary = (ROOT.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \|", glossary, re.MULTILINE)
    assert [word for word in NAMED if rows.count(word) != 1] == []


def test_a_class_with_such_a_word_is_found():
    found = classes_by_word(["HubLink", "Links", "Linked", "DealerSession"])
    assert found["link"] == {"HubLink", "Links"} and found["session"] == {"DealerSession"}


# --- the contract: what a change of walls must keep

FILE_OF_UMPC = re.compile(r"(?<![\w/])umpc(_papers)?/[\w/]*\w\.py\b")
PATCHES = {"setattr", "delattr", "patch", "SimpleNamespace"}
DOCUMENTED = {"os._exit"}
"""Public functions of the standard library whose names begin with an underscore."""


def contract() -> list[Path]:
    """The files that `make contract` runs, and those of tests/support that they import."""
    makefile = (ROOT.parent / "Makefile").read_text(encoding="utf-8")
    (folders,) = re.findall(r"^CONTRACT := (.*)$", makefile, re.MULTILINE)
    waiting = [path for folder in folders.split() for path in (ROOT.parent / folder).rglob("*.py")]
    found: list[Path] = []
    while waiting:
        found.append(waiting.pop())
        helpers = re.findall(r"^\s*from tests\.support\.(\w+) import", found[-1].read_text(), re.M)
        paths = {ROOT.parent / "tests" / "support" / f"{helper}.py" for helper in helpers}
        waiting += paths - {*found, *waiting}
    return sorted(found)


def is_private(name: str) -> bool:
    """Whether a name is private. Names such as `_repr_svg_` are hooks of other programs."""
    return name.startswith("_") and not name.endswith("_")


def insides(source: str) -> Iterator[str]:
    """Private names and patches in a file, and the files of umpc that it names."""
    nodes = list(ast.walk(ast.parse(source)))
    of_umpc: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            names = [f"{module}.{alias.name}".strip(".") for alias in node.names]
            yield from (name for name in names if any(map(is_private, name.split("."))))
            yield from (name for name in names if name.startswith("unittest.mock"))
            of_umpc |= {
                alias.asname or alias.name.partition(".")[0]
                for name, alias in zip(names, node.names, strict=True)
                if name.partition(".")[0] in ("umpc", "umpc_papers")
            }
    for node in nodes:
        if isinstance(node, ast.Attribute):
            text, owner = ast.unparse(node), ast.unparse(node.value)
            root = text.partition(".")[0]
            if is_private(node.attr) and owner not in ("self", "cls", "super()"):
                yield from {text} - DOCUMENTED
            if root in of_umpc and not isinstance(node.ctx, ast.Load):
                yield f"{text} is changed"
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func).rpartition(".")[2] in PATCHES:
                yield ast.unparse(node)
        elif isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).partition(".")[0] for base in node.bases}
            yield from _inherited(node) if bases & of_umpc else ()
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (found.group() for found in FILE_OF_UMPC.finditer(node.value))


def _inherited(defined: ast.ClassDef) -> Iterator[str]:
    """The private names that a class takes from its bases."""
    nodes = list(ast.walk(defined))
    own = {each.name for each in nodes if isinstance(each, ast.FunctionDef)}
    members = [each for each in nodes if isinstance(each, ast.Attribute) and is_private(each.attr)]
    own |= {each.attr for each in members if isinstance(each.ctx, ast.Store)}
    yield from (ast.unparse(each) for each in members if each.attr not in own)


@pytest.mark.parametrize(
    "path", contract(), ids=lambda path: path.relative_to(ROOT.parent / "tests").as_posix()
)
def test_the_contract_uses_public_names_and_changes_umpc_through_one_door(path):
    """The door is `umpc.testing`. There is no exception."""
    found = [*insides(path.read_text(encoding="utf-8"))]
    assert found == [], "use public names; replace steps by umpc/testing.py"


@pytest.mark.parametrize(
    "source",
    [
        "from umpc.mpc.plan import _loose",
        "from umpc.mpc import _loose",
        "from unittest.mock import patch",
        "node._noise",
        "UMpcNode._own_noise",
        "monkeypatch.setattr(client, 'NodeLink', Liar)",
        "setattr(node, 'noise', 0)",
        "SimpleNamespace(name='node')",
        "from umpc.coordinator import client\nclient.NodeLink = Liar",
        "import umpc\ndel umpc.coordinator.client.NodeLink",
        "from umpc.x import Node\nclass Liar(Node):\n    def lie(self): self._noise.clear()",
        "path = 'umpc/mpc/plan.py'",
    ],
)
def test_each_look_into_the_inside_is_found(source):
    assert len([*insides(source)]) == 1


def test_only_the_papers_steps_and_tests_reach_the_door():
    """No command and no configuration replaces a step or takes out a check."""
    beside = (ROOT.parent / name for name in ("umpc_papers", "bench", "reproduction"))
    folders = (ROOT, *beside)
    paths = [path for folder in folders for path in folder.rglob("*.py") if path.stem != "testing"]
    door = re.compile(r"\b(umpc|umpc_papers)(\.testing| import testing)\b")
    assert not [path for path in paths if door.search(path.read_text(encoding="utf-8"))]


def test_a_step_has_a_public_name():
    """A test that replaces a step names it, so it is none of its module's private parts."""
    tables = (umpc.testing.STEPS, umpc_papers.testing.STEPS)
    names = " ".join(each for table in tables for role in table.values() for each in role.values())
    assert [name for name in names.split() if is_private(name)] == []


# --- all other tests replace nothing inside umpc, too

ELSEWHERE = re.compile(
    r"(tests|bench|reproduction|asyncio|builtins|numpy|os|pathlib|shutil|socket|subprocess|sys"
    r"|tempfile|threading|time|__main__)\b"
)
"""Failures and clocks of the system around umpc, and modules of the tests and tools themselves."""


def replaced(source: str) -> Iterator[str]:
    """Everything that a file replaces by hand, unless it is `ELSEWHERE`.

    A name that came otherwise counts.
    """
    nodes = list(ast.walk(ast.parse(source)))
    origins = {
        alias.asname or alias.name: f"{getattr(node, 'module', '')}.{alias.name}".strip(".")
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for node in nodes:
        by_patch = False
        if isinstance(node, ast.Call) and node.args:
            words, what = ast.unparse(node.func).split("."), node.args[0]
            if not PATCHES.intersection(words):
                continue
            by_patch = len(words) > 1
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            what = node
        else:
            continue
        root, dot, rest = ast.unparse(what).strip("'\"").partition(".")
        full = origins.get(root, root) + dot + rest
        # a statement, and setattr itself, also fill the test's own objects
        if re.match(r"umpc(_papers)?\b", full) or (by_patch and not ELSEWHERE.match(full)):
            yield full


@pytest.mark.parametrize(
    "door", [umpc.testing, umpc_papers.testing], ids=lambda door: door.__name__
)
def test_each_step_and_each_limit_stands_where_its_table_says(door):
    tables = [*door.STEPS.values(), door.LIMITS]
    places = [(place, name) for table in tables for place in table for name in table[place].split()]
    missing = []
    for place, name in places:
        module, _, path = place.partition(":")
        owner = reduce(getattr, filter(None, path.split(".")), import_module(module))
        missing += [] if hasattr(owner, name) else [f"{place} {name}"]
    assert missing == []


def imported_privately(source: str) -> Iterator[str]:
    """The private names of umpc that a file imports."""
    of_umpc = re.compile(r"umpc(_papers)?\.")
    yield from (name for name in insides(source) if of_umpc.match(name) and " " not in name)


def test_no_test_imports_a_private_name():
    files = (ROOT.parent / "tests").rglob("*.py")
    found = [n for file in files for n in imported_privately(file.read_text(encoding="utf-8"))]
    assert found == []


def test_an_import_of_a_private_name_is_found():
    source = "from umpc.a import b, _c\nfrom umpc._d import e\nb._private"
    assert list(imported_privately(source)) == ["umpc.a._c", "umpc._d.e"]


def test_no_test_replaces_anything_inside_umpc_by_hand():
    """The doors are `lying`, `without` and `limited` of `umpc.testing`; or a test is a dialogue."""
    tests = ROOT.parent / "tests"
    found = [
        f"{file.relative_to(tests)}: {place}"
        for file in sorted(tests.rglob("*.py"))
        for place in replaced(file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("from umpc.a import b\nm.setattr(b, 'MOST', 3)", "umpc.a.b"),
        ("from umpc.a import b\nm.setattr(b.os, 'fsync', full)", "umpc.a.b.os"),
        ("from umpc.a import b as c\nsetattr(c, 'MOST', 3)", "umpc.a.b"),
        ("from umpc.a import b\nb.MOST = 3", "umpc.a.b.MOST"),
        ("import umpc as it\ndel it.a", "umpc.a"),
        ("m.setattr('umpc.a.b', f)", "umpc.a.b"),
        ("m.delattr('umpc_papers.a.b')", "umpc_papers.a.b"),
        ("for module in some:\n    m.setattr(module, 'f', f)", "module"),
        ("from unittest.mock import patch\npatch.object(x, 'f', f)", "x"),
    ],
)
def test_each_replaced_thing_is_found(source, place):
    assert list(replaced(source)) == [place]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nm.setattr(os, 'fsync', full)",
        "from tests.system import conftest\nm.setattr(conftest, 'TABLE', '')",
        "own.answer = 3\nsetattr(own, 'answer', 4)",
    ],
)
def test_failures_of_the_system_and_own_objects_are_not_counted(source):
    assert not list(replaced(source))


# --- what the other tests know of umpc

OF_OTHERS = ("_exit", "_index", "_replace", "_asdict", "_fields", "_getframe")
"""Private names of the standard library, and a column of a table."""


def private_reads(source: str) -> Iterator[str]:
    """Private names that a file reads of something that it has not made itself, and objects
    without a type that stand for others."""
    nodes = list(ast.walk(ast.parse(source)))
    reads = [node for node in nodes if isinstance(node, ast.Attribute)]
    # names of the file's own classes and functions
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    of_self = [each for each in reads if ast.unparse(each.value) in ("self", "cls")]
    own |= {each.attr for each in of_self}
    for each in reads:
        is_foreign = is_private(each.attr) and each.attr not in (*own, *OF_OTHERS)
        if is_foreign or each.attr == "SimpleNamespace":
            yield ast.unparse(each)
    yield from (node.id for node in nodes if isinstance(node, ast.Name) and "SimpleNa" in node.id)


def test_no_test_reads_a_private_name_of_umpc_or_fakes_an_object_without_a_type():
    tests = ROOT.parent / "tests"
    found = {
        file.relative_to(tests).as_posix(): names
        for file in sorted(tests.rglob("*.py"))
        if (names := list(private_reads(file.read_text(encoding="utf-8"))))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source", ["side._noise", "types.SimpleNamespace(a=1)", "SimpleNamespace()"]
)
def test_a_private_name_and_an_object_without_a_type_are_found(source):
    assert list(private_reads(source))
