"""The canonical text of a kernel, and the parser that reads it back.

    sign(a.age - b.age) * sign(a.balance - b.balance)

A study carries this text, a node shows it, and a hash covers it. Reading uses Python's own parser
for the syntax tree and accepts a closed list of node kinds. Nothing is ever run.

*Words.* Uniform numbers from the joint seed's stream, equal at every process that holds the seed.
"""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.errors import KernelError
from umpc.ustat import expression as ex

MAX_TEXT = 16384
"""The longest kernel text that is read, in characters."""
MAX_DEPTH = 128
"""The deepest nesting that is read. Every interpreter recurses as deep."""

_ARGUMENTS = {"sign": 1, "abs": 1, "select": 3}
"""The functions of kernel texts, with their numbers of arguments."""

Part: TypeAlias = tuple[str, int]
"""A text with its binding strength."""
_SUM, _PRODUCT, _ATOM = 1, 2, 3


def to_text(expression: ex.Expression) -> str:
    """The canonical text. Equal expressions have equal text."""
    return ex.interpret(expression, _Writer())[0]


def _between(sign: str) -> Callable[[Any, Part, Part], Part]:
    """The method of a writer for an operator whose two sides need no brackets."""
    return lambda _, left, right: (f"({left[0]} {sign} {right[0]})", _ATOM)


class _Writer(ex.Interpreter[Part]):
    """Binding strengths let brackets stand only where they are needed."""

    def field(self, record: int, name: str) -> Part:
        plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
        access = f".{name}" if plain else f"[{json.dumps(name, ensure_ascii=False)}]"
        return ex.RECORD_NAMES[record] + access, _ATOM

    def constant(self, value: Fraction) -> Part:
        plain = value >= 0 and value.denominator == 1
        return str(value) if plain else f"({value})", _ATOM

    def add(self, left: Part, right: Part) -> Part:
        return f"{_bracket(left, _SUM)} + {_bracket(right, _PRODUCT)}", _SUM

    def subtract(self, left: Part, right: Part) -> Part:
        return f"{_bracket(left, _SUM)} - {_bracket(right, _PRODUCT)}", _SUM

    def multiply(self, left: Part, right: Part) -> Part:
        return f"{_bracket(left, _PRODUCT)} * {_bracket(right, _ATOM)}", _PRODUCT

    less, equal, same = _between("<"), _between("=="), _between("==")
    both, either, exclusive = _between("&"), _between("|"), _between("^")

    def sign(self, operand: Part) -> Part:
        return f"sign({operand[0]})", _ATOM

    def absolute(self, operand: Part) -> Part:
        return f"abs({operand[0]})", _ATOM

    def select(self, condition: Part, then: Part, otherwise: Part) -> Part:
        return f"select({condition[0]}, {then[0]}, {otherwise[0]})", _ATOM

    def complement(self, bit: Part) -> Part:
        return f"(~{_bracket(bit, _ATOM)})", _ATOM


def _bracket(part: Part, strength: int) -> str:
    return part[0] if part[1] >= strength else f"({part[0]})"


def from_text(text: str) -> ex.Expression:
    """The expression for which a text stands.

    Raises: KernelError naming the offending part.
    """
    if not isinstance(text, str):
        raise KernelError(f"a kernel is text, got {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise KernelError(
            f"a kernel's text has at most {MAX_TEXT} characters, this one has {len(text)}"
        )
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise KernelError(f"the kernel's text is not an expression: {text[:80]!r}") from error
    if _depth(tree) > MAX_DEPTH:
        raise KernelError(
            f"a kernel's text is nested at most {MAX_DEPTH} deep; split long sums with brackets"
        )
    return _read(tree.body)


def _depth(tree: ast.AST) -> int:
    """The levels of the syntax tree, counted without recursion."""
    depth = 0
    level = [tree]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


_NUMBERS: dict[type[ast.operator], type[ex.BinaryOperation]] = {
    ast.Add: ex.Add,
    ast.Sub: ex.Subtract,
    ast.Mult: ex.Multiply,
}
_BITS: dict[type[ast.operator], type[ex.BinaryOperation]] = {
    ast.BitAnd: ex.And,
    ast.BitOr: ex.Or,
    ast.BitXor: ex.Xor,
}


def _read(node: ast.expr) -> ex.Expression:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return ex.Constant(Fraction(value))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return ex.Constant(Fraction(_integer(left), _integer(right)))
        case ast.UnaryOp(op=ast.USub()):
            return ex.Constant(Fraction(_integer(node)))
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ex.Not(_read_bit(operand))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BITS:
            return _BITS[type(operator)](_read_bit(left), _read_bit(right))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _NUMBERS:
            return _NUMBERS[type(operator)](_read(left), _read(right))
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[right]):
            return ex.Less(_read(left), _read(right))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return ex.Equal(_read(left), _read(right))
        case ast.Attribute(value=ast.Name(id=record), attr=name):
            return ex.Field(_record(record), name)
        case ast.Subscript(value=ast.Name(id=record), slice=ast.Constant(value=str(name))):
            return ex.Field(_record(record), name)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _ARGUMENTS:
            return _call(name, arguments)
    raise KernelError(f"a kernel's text may not contain {ast.unparse(node)[:80]!r}")


def _call(name: str, arguments: list[ast.expr]) -> ex.Expression:
    count = _ARGUMENTS[name]
    if len(arguments) != count:
        raise KernelError(f"{name} takes {count} arguments, the kernel gives it {len(arguments)}")
    if name == "select":
        condition, then, otherwise = arguments
        return ex.Select(_read_bit(condition), _read(then), _read(otherwise))
    operand = _read(arguments[0])
    return ex.Sign(operand) if name == "sign" else ex.Absolute(operand)


def _read_bit(node: ast.expr) -> ex.Expression:
    part = _read(node)
    if not part.is_bit:
        raise KernelError(
            f"a condition is expected where the kernel's text has {ast.unparse(node)[:80]!r}"
        )
    return part


def _integer(node: ast.expr) -> int:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if (
            value and value is not True
        ):
            return -value
        case ast.Constant(value=int(value)) if value and value is not True:
            return value
    raise KernelError(
        f"an integer other than 0 is expected "
        f"where the kernel's text has {ast.unparse(node)[:80]!r}"
    )


def _record(name: str) -> int:
    if len(name) != 1 or name not in ex.RECORD_NAMES:
        raise KernelError(
            f"a record is called {', '.join(ex.RECORD_NAMES[:3])}, …; "
            f"the kernel's text says {name!r}"
        )
    return ex.RECORD_NAMES.index(name)


# --- words ----------------------------------------------------------------------------------------

Words: TypeAlias = Callable[[int], NDArray[np.uint64]]
"""Number of words → (words,) uint64, uniform, from the joint seed's stream."""


def below(bound: int | NDArray[np.integer], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Uniform integers in [0, bound) from 64-bit words, by multiply and shift (Lemire 2019).

    Only the upper half of each word is used, so each probability is off by less than 2^-32.

    Args:
        bound: 0 < bound ≤ 2^32, one number or one for each word.
        words: (n,) uint64.

    Returns: (n,) int64.
    """
    upper_half = words >> np.uint64(32)
    product = upper_half * np.asarray(bound, dtype=np.uint64)
    return (product >> np.uint64(32)).astype(np.int64)


def secret_order(size: int, words: Words) -> NDArray[np.int64]:
    """A permutation of 0..size − 1, exactly uniform: (size,) int64. It takes `size` words or more.

    Each word gives its lower bits to its place, and all are sorted as they are, which is a small
    part of the work of an argsort. Places whose words are otherwise equal are ordered by further
    words.
    """
    bits = np.uint64(max(1, (size - 1).bit_length()))
    keys = words(size) >> bits
    keys <<= bits
    keys |= np.arange(size, dtype=np.uint64)
    keys.sort()
    order = (keys & ((np.uint64(1) << bits) - np.uint64(1))).view(np.int64)
    keys >>= bits
    for start, stop in _runs(keys):
        order[start:stop] = order[start:stop][secret_order(stop - start, words)]
    return order


def _runs(ascending: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """The parts of an ascending array in which a number occurs more than once."""
    equal = np.flatnonzero(ascending[1:] == ascending[:-1])
    if not len(equal):
        return []
    is_first = np.diff(equal, prepend=-2) > 1
    starts, stops = equal[is_first], equal[np.append(is_first[1:], True)] + 2
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def random_order(size: int, words: Words) -> NDArray[np.int64]:
    """A random permutation of 0..size − 1: (size,) int64. It takes `size` words.

    Equal words keep their order. There are hardly ever any, and numpy's usual sorting is several
    times as fast where there are none.
    """
    drawn = words(size)
    order = np.argsort(drawn)
    ascending = drawn[order]
    if (ascending[1:] == ascending[:-1]).any():
        order = np.argsort(drawn, kind="stable")
    return order.astype(np.int64, copy=False)
