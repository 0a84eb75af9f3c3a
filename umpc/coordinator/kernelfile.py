"""A user's own kernel: a Python file and function, such as `kernels.py:close_in_age`.

    from umpc.ustat.tracing import select

    def close_in_age(a, b):
        near = (a.age - b.age < 5) & (b.age - a.age < 5)
        return select(near, abs(a.balance - b.balance), 0)

Only the coordinator runs the function, once, to trace it. Its number of arguments is the number of
records in an edge. Nodes get the expression that it computed. A function that returns a tuple
computes several sums over the same edges.
"""

from __future__ import annotations

import importlib.util
import traceback
from dataclasses import dataclass
from pathlib import Path

from umpc.errors import KernelError
from umpc.ustat.expression import Expression
from umpc.ustat.tracing import arity, trace_all


@dataclass(frozen=True)
class TracedKernel:
    """The sums that a function computes. `degree` is the number of records in an edge."""

    expressions: tuple[Expression, ...]
    degree: int


def load_kernel(place: str, folder: Path) -> TracedKernel:
    """Return the expressions of "FILE:FUNCTION", where FILE is relative to a folder.

    Raises: KernelError, which names file and line, what is wrong there, and what to write instead.
    """
    name, _, function = place.rpartition(":")
    path = folder / name
    if not name or not function.isidentifier():
        raise KernelError(
            f"a kernel is named FILE:FUNCTION, such as kernels.py:mine; got {place!r}"
        )
    kernel = getattr(_module(path), function, None)
    if not callable(kernel):
        raise KernelError(f"{path}: there is no function {function!r}; correct the study's kernel")
    return TracedKernel(trace_all(kernel), arity(kernel))


def _module(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise KernelError(
            f"{path}: a Python file was expected, and there is none; correct the study's kernel"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's own code may raise anything
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, KernelError):
            reason = error.message
        raise KernelError(
            f"{path}: the file could not be run: {reason}{_where(error, path)}"
        ) from error
    return module


def _where(error: BaseException, path: Path) -> str:
    """Return the last line of the user's file that led to an error, as " (FILE, line N)"."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f" ({path.name}, line {error.lineno})"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f" ({path.name}, line {lines[-1]})" if lines else ""
