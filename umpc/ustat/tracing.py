"""The expression that a Python function over records computes.

    trace(lambda a, b: sign(a.age - b.age) * sign(a.balance - b.balance))

The function runs once, in this process, on stand-ins that record each operation. The function never
travels; only the expression does. An operation that no expression has is refused, with the file and
line of the function.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from umpc.errors import KernelError
from umpc.ustat import expression as ex


def _refuse(what: str, instead: str) -> Callable[..., NoReturn]:
    """A method that refuses an operation that no kernel has.

    Args: what: the end of a sentence that begins with "a kernel". instead: the advice.
    """

    def method(self: object, *_: object) -> NoReturn:
        raise KernelError(f"a kernel {what}: this is done to {self!r}; {instead}")

    return method


_not_a_number_yet = _refuse(
    "cannot round or convert data, or apply a function of the math module to them",
    "leave out int(), float() and round(): a field already is an exact number with a resolution; "
    "in place of a function write +, -, *, abs, sign, select, minimum, maximum or clamp, "
    "or apply it to the released number",
)
_not_a_list = _refuse(
    "holds single numbers, which have no length, no items and no loop",
    "name the fields that are meant, as in a.x + a.y, and for `in` write (a.x == 1) | (a.x == 2)",
)
_no_operator = _refuse(
    "has no //, %, @, <<, >> and no powers to data", "write +, -, *, and / or ** by a number"
)


Join = Callable[[ex.Expression, ex.Expression], ex.Expression]


def _operator(join: Join) -> Callable[[Traced, Any], Traced]:
    """A method that joins a traced value with another value."""
    return lambda self, other: Traced(join(self.node, lift(other)))


def _swapped(join: Join) -> Callable[[Traced, Any], Traced]:
    """The operator with the other value at the left."""
    return lambda self, other: Traced(join(lift(other), self.node))


def _not_less(left: ex.Expression, right: ex.Expression) -> ex.Expression:
    return ex.Not(ex.Less(left, right))


def _not_equal(left: ex.Expression, right: ex.Expression) -> ex.Expression:
    return ex.Not(ex.Equal(left, right))


class Traced:
    """A value inside a kernel while the kernel is traced: the expression that computes it."""

    # `==` builds an expression, so a hash would mislead sets and dicts
    __hash__ = None  # type: ignore[assignment]  # Python's way to make a class unhashable
    # numpy's numbers then leave their operators to this class, and numpy's functions refuse it
    __array_ufunc__ = None

    __int__ = __float__ = __complex__ = __index__ = _not_a_number_yet
    __round__ = __trunc__ = __floor__ = __ceil__ = _not_a_number_yet
    __len__ = __iter__ = __reversed__ = __contains__ = __getitem__ = _not_a_list
    __mod__ = __floordiv__ = __divmod__ = __matmul__ = __lshift__ = __rshift__ = _no_operator
    __rmod__ = __rfloordiv__ = __rdivmod__ = __rmatmul__ = __rlshift__ = __rrshift__ = __rpow__ = (
        _no_operator
    )

    def __init__(self, node: ex.Expression):
        self.node = node

    def __repr__(self) -> str:
        from umpc.ustat.text import to_text

        return f"Traced({to_text(self.node)})"

    def __bool__(self) -> bool:
        raise KernelError(
            f"a kernel may not branch on data: {self!r} was used as a condition; for `if` write "
            f"select(condition, then, otherwise), for `and`, `or` and `not` write &, | and ~ of "
            f"bracketed conditions, for `x < y < z` write (x < y) & (y < z), for min(x, y) and "
            f"max(x, y) write minimum(x, y) and maximum(x, y), for `x in (1, 2)` write "
            f"(x == 1) | (x == 2)"
        )

    __add__, __radd__ = _operator(ex.Add), _swapped(ex.Add)
    __sub__, __rsub__ = _operator(ex.Subtract), _swapped(ex.Subtract)
    __mul__, __rmul__ = _operator(ex.Multiply), _swapped(ex.Multiply)
    __lt__, __gt__ = _operator(ex.Less), _swapped(ex.Less)
    __le__, __ge__ = _swapped(_not_less), _operator(_not_less)
    # comparisons build expressions, where object's return a bool
    __eq__ = _operator(ex.Equal)  # type: ignore[assignment]
    __ne__ = _operator(_not_equal)  # type: ignore[assignment]

    def __neg__(self) -> Traced:
        return Traced(ex.Subtract(ex.Constant(Fraction(0)), self.node))

    def __truediv__(self, other: Any) -> Traced:
        divisor = lift(other)
        if not isinstance(divisor, ex.Constant) or divisor.value == 0:
            raise KernelError(
                f"a kernel divides by numbers other than 0 only, not by {other!r}; "
                f"divide after the release"
            )
        return Traced(ex.Multiply(self.node, ex.Constant(1 / divisor.value)))

    def __rtruediv__(self, other: Any) -> Traced:
        raise KernelError(
            f"a kernel cannot divide by data: {other!r} / {self!r}; divide after the release"
        )

    def __pow__(self, power: Any) -> Traced:
        if not isinstance(power, int) or not 1 <= power <= 8:
            raise KernelError(f"a kernel's powers are whole numbers from 1 to 8, got {power!r}")
        product = self.node
        for _ in range(power - 1):
            product = ex.Multiply(product, self.node)
        return Traced(product)

    def __abs__(self) -> Traced:
        return Traced(ex.Absolute(self.node))

    def __and__(self, other: Any) -> Traced:
        return Traced(ex.And(bit(self, "&"), bit(other, "&")))

    def __or__(self, other: Any) -> Traced:
        return Traced(ex.Or(bit(self, "|"), bit(other, "|")))

    def __xor__(self, other: Any) -> Traced:
        return Traced(ex.Xor(bit(self, "^"), bit(other, "^")))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Traced:
        return Traced(ex.Not(bit(self, "~")))


class Record:
    """The stand-in for one record: `a.age`, or `a["mean radius"]` where a name is no identifier."""

    __hash__ = object.__hash__
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse(
        "compares fields, not records", "write a.x == b.x, or sign(a.x - b.x)"
    )

    def __init__(self, index: int):
        self.__index = index

    def __repr__(self) -> str:
        return f"the record {ex.RECORD_NAMES[self.__index]}"

    def __getattr__(self, name: str) -> Traced:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Traced:
        if not isinstance(name, str):
            raise KernelError(f'a field is named by text, as in a["age"], got {name!r}')
        return Traced(ex.Field(self.__index, name))


def lift(value: Any) -> ex.Expression:
    """The expression of a traced value or of a number. Raises: KernelError for anything else."""
    if isinstance(value, Traced):
        return value.node
    if isinstance(value, float | Decimal) and not isfinite(value):
        raise KernelError(f"a kernel combines fields and finite numbers, got {value}")
    if isinstance(value, bool | int | Fraction | Decimal):
        return ex.Constant(Fraction(value))
    if isinstance(value, float):
        return ex.Constant(Fraction(repr(float(value))))
    raise KernelError(f"a kernel combines fields and numbers, got {type(value).__name__} {value!r}")


def bit(value: Any, operator: str) -> ex.Expression:
    """The expression of a condition. Raises: KernelError, naming the operator, for a number."""
    node = lift(value)
    if not node.is_bit:
        raise KernelError(f"{operator} combines conditions such as a.x < b.x, got {Traced(node)!r}")
    return node


def sign(value: Any) -> Traced:
    """−1, 0 or 1: the sign of the value."""
    return Traced(ex.Sign(lift(value)))


def select(condition: Traced, then: Any, otherwise: Any) -> Traced:
    """`then` where the condition holds, else `otherwise`. Both are always computed."""
    return Traced(ex.Select(bit(condition, "select"), lift(then), lift(otherwise)))


def minimum(left: Any, right: Any) -> Traced:
    """The smaller of two values."""
    return Traced(ex.Select(ex.Less(lift(left), lift(right)), lift(left), lift(right)))


def maximum(left: Any, right: Any) -> Traced:
    """The larger of two values."""
    return Traced(ex.Select(ex.Less(lift(left), lift(right)), lift(right), lift(left)))


def clamp(value: Any, low: Any, high: Any) -> Traced:
    """The value, or `low` where the value is below it, or `high` where the value is above it.

    A kernel declares its range with it. Raises: KernelError where both bounds are numbers and the
    lower one is above the upper one.
    """
    least, most = lift(low), lift(high)
    if (
        isinstance(least, ex.Constant)
        and isinstance(most, ex.Constant)
        and (least.value > most.value)
    ):
        raise KernelError(
            f"clamp's lower bound {least.value} is above its upper bound {most.value}; swap them"
        )
    return minimum(maximum(value, low), high)


def trace(kernel: Callable[..., Any]) -> ex.Expression:
    """The expression that a kernel function computes. Its arguments are the k records of an edge.

    Raises: KernelError with the fault, its file and line, and what to write instead.
    """
    values = trace_all(kernel)
    if len(values) != 1:
        raise KernelError(
            f"the kernel {_name(kernel)} returns {len(values)} values where one is expected; "
            f"return one number, or use it where a study takes several sums (trace_all)"
            f"{_place(kernel)}"
        )
    return values[0]


def trace_all(kernel: Callable[..., Any]) -> tuple[ex.Expression, ...]:
    """The expressions of a kernel that returns one or several values, one for each sum.

    Raises: KernelError, as `trace` does.
    """
    records = [Record(index) for index in range(arity(kernel))]
    try:
        returned = kernel(*records)
    except KernelError as error:
        error.message += _place(kernel, error)
        error.args = (error.message,)
        raise
    except Exception as error:  # the user's own code may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise KernelError(
            f"the kernel's own code failed with {reason}, in {_name(kernel)}; "
            f"correct it{_place(kernel, error)}"
        ).with_traceback(error.__traceback__) from error
    return _returned(kernel, returned)


def _returned(kernel: Callable[..., Any], returned: Any) -> tuple[ex.Expression, ...]:
    values = returned if isinstance(returned, tuple | list) else [returned]
    try:
        if not values:
            raise KernelError("an empty list was returned where one or several values are expected")
        return tuple(lift(value) for value in values)
    except KernelError as error:
        raise KernelError(
            f"{error.message}; let {_name(kernel)} return a number or several, "
            f"as in return abs(a.x - b.x){_place(kernel)}"
        ) from None


def arity(kernel: Callable[..., Any]) -> int:
    """The number of records that a kernel function takes: its arguments without a default.

    Raises: KernelError where it is no function of a fixed number of records, or takes too many.
    """
    try:
        parameters = inspect.signature(kernel).parameters.values()
    except (TypeError, ValueError):
        raise KernelError(
            f"a kernel is a function over records, got {kernel!r}; write def kernel(a, b)"
        ) from None
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    if any(
        parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in required
    ):
        raise KernelError(
            f"the kernel {_name(kernel)} takes *, which is no number of records; write (a, b)"
        )
    if not 1 <= len(required) <= len(ex.RECORD_NAMES):
        raise KernelError(
            f"a kernel takes 1 to {len(ex.RECORD_NAMES)} records, "
            f"this one takes {len(required)}{_place(kernel)}"
        )
    return len(required)


def _name(kernel: Callable[..., Any]) -> str:
    return getattr(inspect.unwrap(kernel), "__name__", type(kernel).__name__)


def _place(kernel: Callable[..., Any], error: BaseException | None = None) -> str:
    """A place in the kernel's file, as " (kernels.py, line 3)".

    It is the line at which the error arose, or the line at which the kernel begins. It is empty for
    a kernel without code of its own.
    """
    code = getattr(inspect.unwrap(kernel), "__code__", None)
    if code is None:  # an object with __call__, a functools.partial
        return ""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    lines = [frame.lineno for frame in frames if frame.filename == code.co_filename]
    line = lines[-1] if lines else code.co_firstlineno
    return f" ({Path(code.co_filename).name}, line {line})"
