"""State that outlives a call, found in the source: caches, module state, attributes that change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import umpc

ROOT = Path(umpc.__file__).parents[1]
CONTAINERS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
MADE_BY = {
    *("dict", "list", "set", "deque", "defaultdict", "Counter", "OrderedDict", "bytearray"),
    *("WeakSet", "WeakKeyDictionary", "WeakValueDictionary", "Queue", "Turns"),
}
CHANGES = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem"),
    *("popleft", "put", "put_nowait", "remove", "setdefault", "update"),
}
CACHES = {"cache", "lru_cache"}
PROCESSES = (
    *("umpc/node/", "umpc/dealer/", "umpc/hub/", "umpc/coordinator/", "umpc/transport/"),
    *("umpc/enrolment/", "umpc/monitoring/", "umpc/compute/", "umpc/approval_page/"),
    *("umpc/crypto/signing.py", "umpc_papers/shuffler/"),
)
"""Where objects may live as long as a process. All others belong to one study or command."""


def modules() -> list[tuple[str, ast.Module]]:
    """Every module that is written by hand."""
    return _modules(ROOT)


@cache
def _modules(root: Path) -> list[tuple[str, ast.Module]]:
    names = {
        path.relative_to(root).as_posix(): path
        for folder in ("umpc", "umpc_papers")
        for path in sorted((root / folder).rglob("*.py"))
    }
    return [
        (name, ast.parse(path.read_text(encoding="utf-8")))
        for name, path in names.items()
        if "_pb2" not in name
    ]


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, which several searches go through."""
    return list(ast.walk(tree))


def name_of(node: ast.AST | None) -> str:
    """The last name of an expression such as `functools.lru_cache(maxsize=4)`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_container(value: ast.AST | None) -> bool:
    """Whether an expression makes an object that can grow."""
    if isinstance(value, ast.Call) and name_of(value) == "field":
        made = next((key.value for key in value.keywords if key.arg == "default_factory"), None)
        made = made.body if isinstance(made, ast.Lambda) else made
        return name_of(made) in MADE_BY
    return isinstance(value, CONTAINERS) or (
        isinstance(value, ast.Call) and name_of(value) in MADE_BY
    )


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and values of a statement that assigns."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value


@cache
def changed(tree: ast.AST) -> set[str]:
    """The texts of all that is changed in place or deleted in a tree, such as `self._open`."""
    found: set[ast.expr] = set()
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found |= {node.func.value} if node.func.attr in CHANGES else set()
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
            found.add(node.target)
        found |= {each.value for each in targets if isinstance(each, ast.Subscript)}
    return {ast.unparse(each) for each in found}


def changed_by_functions(tree: ast.AST) -> set[str]:
    """Containers that functions change: all but what happens while a module is imported."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found = (changed(node) for node in nodes(tree) if isinstance(node, functions))
    return set().union(*found)


def caches() -> dict[str, str]:
    """Every cache of functools: its place, and the most entries that it keeps; "" for no limit."""
    found = {}
    for module, tree in modules():
        for node in nodes(tree):
            uses = list(getattr(node, "decorator_list", ()))
            names = [getattr(node, "name", "")]
            is_assigned = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if is_assigned and node in tree.body:
                uses, names = [node.value.func], [ast.unparse(each) for each in node.targets]
            for use in uses:
                if name_of(use) in CACHES:
                    limits = [key for key in getattr(use, "keywords", ()) if key.arg == "maxsize"]
                    limit = ast.unparse(limits[0].value) if limits else ""
                    is_bare = name_of(use) == "lru_cache" and not isinstance(use, ast.Call)
                    limit = "128" if is_bare else limit
                    found[f"{module}:{names[0]}"] = "" if limit == "None" else limit
    return found


def stateful_classes() -> set[str]:
    """Classes whose methods change the object after it was made."""
    found = set()
    for _, tree in modules():
        for each in nodes(tree):
            if not isinstance(each, ast.ClassDef):
                continue
            for method in each.body:
                if getattr(method, "name", "__init__").startswith("__init"):
                    continue
                stored = {
                    ast.unparse(target) for node in nodes(method) for target, _ in assigned(node)
                }
                if any(name.startswith("self.") for name in stored | changed(method)):
                    found.add(each.name)
    return found


def of_modules() -> set[str]:
    """Module and class state that changes: containers, globals, and objects that change."""
    found, stateful = set(), stateful_classes()
    for module, tree in modules():
        names = changed_by_functions(tree)
        for node in nodes(tree):
            if isinstance(node, ast.Global):
                found |= {f"{module}:{name}" for name in node.names}
        bodies = [("", tree.body)]
        bodies += [(f"{c.name}.", c.body) for c in tree.body if isinstance(c, ast.ClassDef)]
        for owner, body in bodies:
            for statement in body:
                for target, value in assigned(statement):
                    name = ast.unparse(target)
                    forms = {name, f"self.{name}", f"cls.{name}", owner + name}
                    is_field = owner and name_of(value) == "field"
                    changes = is_container(value) and not is_field and names & forms
                    makes = isinstance(value, ast.Call) and name_of(value) in stateful
                    if changes or makes:
                        found.add(f"{module}:{owner}{name}")
    return found


def of_objects() -> set[str]:
    """Attributes of the processes' classes that are containers and change after `__init__`."""
    found = set()
    for module, tree in modules():
        if not module.startswith(PROCESSES):
            continue
        elsewhere = {name.rpartition(".")[2] for name in changed(tree) if "." in name}
        for each in (node for node in nodes(tree) if isinstance(node, ast.ClassDef)):
            made = {
                f"self.{ast.unparse(target)}"
                for statement in each.body
                for target, value in assigned(statement)
                if name_of(value) == "field" and is_container(value)
            }
            for method in each.body:
                if getattr(method, "name", "") in ("__init__", "__post_init__"):
                    for node in nodes(method):
                        made |= {
                            ast.unparse(target)
                            for target, value in assigned(node)
                            if isinstance(target, ast.Attribute) and is_container(value)
                        }
            others = [m for m in each.body if getattr(m, "name", "") != "__init__"]
            changes = set().union(*(changed(method) for method in others), set())
            again = {
                ast.unparse(target)
                for method in others
                for node in nodes(method)
                for target, _ in assigned(node)
            }
            own = {name for name in made if name in changes | again or name[5:] in elsewhere}
            found |= {f"{module}:{each.name}.{name[5:]}" for name in own}
    return found
