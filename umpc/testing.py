"""Checks of umpc taken out by name, so that a test can show that it would notice.

No command and no configuration reaches this module, and no other module imports it. A test writes

    with without("an opening fits"):
        ...    the same refusal as before must not come

A check is an `if` that only raises, or an `except` that names the culprit. `without` compiles its
function anew without it, and puts the new code into the function itself. So every importer of the
function runs it. It is for one thread.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, FunctionType

from umpc.errors import LocalProtocolError

CHECKS: dict[str, tuple[str, str, str]] = {
    "packed length": ("umpc.crypto.packing", "unpack", "bits take"),
    "packed padding": ("umpc.crypto.packing", "unpack", "the padding after"),
    "members are the study's": (
        "umpc.protocols.base.seed_agreement",
        "SeedAgreement.agree",
        "or another entry than",
    ),
    "the own member is intact": (
        "umpc.protocols.base.seed_agreement",
        "SeedAgreement.agree",
        "or another entry than",
    ),
    "a member is signed": ("umpc.study.members", "check_member", "does not fit its member"),
    "an opening fits": ("umpc.study.attempt", "_check_each", "does not fit its commitment"),
    "all signed the members": ("umpc.study.members", "_check_each", "has not signed"),
    "all signed the attempt": ("umpc.study.members", "_check_each", "has not signed"),
    "a key is usable": ("umpc.crypto.zero_shares", "KeyAgreement._exchange", "unusable"),
    "there are enough records": ("umpc.ustat.sampling", "edge_count", "needs at least"),
    "only pairs are paired": ("umpc.ustat.sampling", "edge_count", "pairs the records"),
    "there are so many edges": ("umpc.ustat.sampling", "_count", "ask for fewer or all"),
    "there are records of both classes": (
        "umpc.ustat.sampling",
        "two_sample_edge_count",
        "of either class",
    ),
    "length of keys": ("umpc.mpc.masked.dcf", "ComparisonKeys.decode", "keys of width"),
    "shape of a message": ("umpc.crypto.rounds", "check_reply", "was due"),
    "length of material": ("umpc.mpc.masked.material", "DealtPart.decode_all", "material of"),
    "length of opened bits": ("umpc.mpc.masked.openings", "read_opens", "must take"),
    "padding of opened bits": ("umpc.mpc.masked.edge_layout", "EdgeLayout._loose", "the padding"),
}
"""Check → module, function, and words of the message with which it refuses."""


@contextmanager
def without(check: str) -> Iterator[None]:
    """Run umpc without one of its `CHECKS`. Raises: LocalProtocolError where it is not found."""
    module, path, words = CHECKS[check]
    found: object = import_module(module)
    for name in path.split("."):
        found = inspect.getattr_static(found, name)
    function = inspect.unwrap(getattr(found, "__func__", found))  # type: ignore[arg-type]
    if not isinstance(function, FunctionType) or function.__code__.co_freevars:
        raise LocalProtocolError(f"the check {check!r} is in no plain function")
    before = function.__code__
    function.__code__ = _without(function, words, check)
    try:
        yield
    finally:
        function.__code__ = before


def _without(function: FunctionType, words: str, check: str) -> CodeType:
    """The code of a function whose refusal with these words is taken out."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    removal = _Removal(words)
    definition = removal.visit(tree).body[0]
    if not removal.count:
        raise LocalProtocolError(f"no refusal with {words!r} was found for the check {check!r}")
    definition.decorator_list = []
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    module = compile(
        ast.fix_missing_locations(tree), function.__code__.co_filename, "exec", flags, True
    )
    (code,) = (each for each in module.co_consts if isinstance(each, CodeType))
    return code


class _Removal(ast.NodeTransformer):
    """Takes out each `if` or `except` that does nothing but refuse with these words."""

    def __init__(self, words: str):
        self._words = words
        self.count = 0

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if node.orelse or not self._refuses(node.body):
            return node
        self.count += 1
        return ast.Expr(node.test)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if self._refuses(node.body):
            self.count += 1
            node.body = [ast.Raise()]
        return node

    def _refuses(self, body: list[ast.stmt]) -> bool:
        last = body[-1]
        return isinstance(last, ast.Raise) and self._words in ast.unparse(last)
