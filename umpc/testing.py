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
from typing import Any

from umpc.errors import LocalProtocolError

AGREE = "umpc.protocols.base.seed_agreement:SeedAgreement.agree"
LEDGER = "umpc.node.budget.ledger:Ledger"
BASE_OT = "umpc.mpc.transfers.base_ot"

CHECKS: dict[str, tuple[str, ...]] = {
    "packed length": ("bits take", "umpc.crypto.ring:unpack"),
    "packed padding": ("the padding after", "umpc.crypto.ring:unpack"),
    "members are the study's": ("or another entry than", AGREE),
    "the own member is intact": ("or another entry than", AGREE),
    "a member is signed": ("does not fit its member", "umpc.study.members:check_member"),
    "an opening fits": ("does not fit its commitment", "umpc.study.attempt:check_openings"),
    "all signed the members": ("has not signed", "umpc.study.members:check_signatures"),
    "all signed the attempt": ("has not signed", "umpc.study.members:check_signatures"),
    "a key is usable": ("unusable", "umpc.crypto.zero_shares:KeyAgreement._exchange"),
    "there are enough records": ("needs at least", "umpc.ustat.sampling:edge_count"),
    "there are so many edges": ("ask for fewer or all", "umpc.ustat.sampling:_count"),
    "length of keys": ("keys of width", "umpc.mpc.masked.dcf:ComparisonKeys.decode"),
    "shape of a message": ("bytes was due", "umpc.crypto.rounds:check_reply"),
    "length of material": ("material of", "umpc.mpc.masked.material:DealtPart.decode_all"),
    "length of opened bits": ("must take", "umpc.mpc.masked.openings:read_opens"),
    "padding of opened bits": ("the padding", "umpc.mpc.masked.edge_layout:EdgeLayout._loose"),
    "an offer is of points": (
        "other bytes",
        f"{BASE_OT}:receive_seeds",
        f"{BASE_OT}:multiple",
    ),
    "a key is a point": ("other bytes", f"{BASE_OT}:multiple"),
    "a key is not the offer": ("the offered point itself", f"{BASE_OT}:send_seeds"),
    "nothing follows the trees": (
        "bits after its trees",
        "umpc.mpc.transfers.channel_set_up:open_sender",
    ),
    "trees of seeds are trees": (
        "trees of seeds that do not fit",
        "umpc.mpc.transfers.channel_set_up:sender_channel",
    ),
    "choices are the same in all digits": (
        "choices of transfers that do not fit",
        "umpc.mpc.transfers.correlated_ot:CorrelatedSender._check",
    ),
    "what is told of coins was committed to": (
        "of the check of coins",
        "umpc.mpc.transfers.checked_bits:_check_commitments",
    ),
    "numbers of coins are bits": ("is no bit", "umpc.mpc.transfers.checked_bits:check_opened"),
    "length of garbled edges": (
        "garbled edges of",
        "umpc.mpc.garbled.garbling:GarbledEdges.decode",
    ),
    "colors differ": ("for colors to differ", "umpc.mpc.garbled.garbling:garble"),
    "shape of a total": ("bits came in", "umpc.protocols.grid.masks:MaskLayout.read"),
    "all signed the total": (
        "has not signed the same total",
        "umpc.protocols.grid.total:check_signed",
    ),
    "the source is alive": ("again and again", "umpc.dp.fixed_coins:random_words"),
    "a study is charged once": ("charged before. Ask for", f"{LEDGER}.reserve"),
    "one run at a time": ("another run of the study", f"{LEDGER}.reserve"),
    "delta is reserved once": ("an open reservation without delta", f"{LEDGER}.reserve_delta"),
    "a share is held of a reserved study": ("before a share is held", f"{LEDGER}.hold"),
    "one attempt is charged": ("another one was charged before", f"{LEDGER}.charge"),
    "a charge is of a held attempt": ("was expected before the charge", f"{LEDGER}.charge"),
    "epsilon is left": ("study asks for epsilon", f"{LEDGER}._check_left#insufficient("),
    "delta is left": ("study asks for delta", f"{LEDGER}._check_left#insufficient("),
}
"""Check → words of the message with which it refuses, and the functions that do so.

Where a message is made elsewhere, # and words of the statement that raises follow the function.
"""


@contextmanager
def without(check: str) -> Iterator[None]:
    """Run umpc without one of its `CHECKS`. Raises: LocalProtocolError where it is not found."""
    message, *places = CHECKS[check]
    parts = [place.partition("#") for place in places]
    functions = [_function_at(place) for place, _, _ in parts]
    before = [function.__code__ for function in functions]
    for function, (_, _, words) in zip(functions, parts, strict=True):
        function.__code__ = _without(function, words or message)
    try:
        yield
    finally:
        for function, code in zip(functions, before, strict=True):
            function.__code__ = code


def _function_at(place: str) -> FunctionType:
    """The function at "module:name", or "module:Class.name"."""
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = inspect.getattr_static(found, name)
    function = inspect.unwrap(getattr(found, "__func__", found))
    if not isinstance(function, FunctionType) or function.__code__.co_freevars:
        raise LocalProtocolError(f"{place} is no function whose code can be replaced")
    return function


def _without(function: FunctionType, words: str) -> CodeType:
    """The code of a function without its refusals with these words."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    removal = _Removal(words)
    (definition,) = removal.visit(tree).body
    if not removal.count:
        raise LocalProtocolError(f"{function.__qualname__} refuses nothing with {words!r}")
    definition.decorator_list = []
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    file = function.__code__.co_filename
    module = compile(ast.fix_missing_locations(tree), file, "exec", flags, dont_inherit=True)
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
