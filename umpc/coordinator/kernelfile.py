"""One's own kernel: a Python file and function, `kernels.py:close_in_age`, traced at the coordinator and nowhere else.

    from umpc.ustat.tracing import select

    def close_in_age(a, b):
        near = (a.age - b.age < 5) & (b.age - a.age < 5)
        return select(near, abs(a.balance - b.balance), 0)

The function runs once, here. Nodes get the expression that it computed.
"""

from __future__ import annotations

import importlib.util
import traceback
from pathlib import Path

from umpc.errors import KernelError
from umpc.ustat.expression import Expression
from umpc.ustat.tracing import trace


def load_kernel(place: str, folder: Path) -> Expression:
    """The expression of "FILE:FUNCTION", FILE relative to a folder.

    Raises: KernelError naming file and line, what is wrong there, and what to write instead.
    """
    name, _, function = place.rpartition(":")
    path = folder / name
    if not name or not function.isidentifier():
        raise KernelError(f"a kernel is named FILE:FUNCTION, such as kernels.py:mine; got {place!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or not path.is_file():
        raise KernelError(f"{path}: a Python file was expected, and there is none; correct the study's kernel")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        kernel = getattr(module, function, None)
        if not callable(kernel):
            raise KernelError(f"{path}: there is no function {function!r}; correct the study's kernel")
        return trace(kernel)
    except KernelError as error:
        error.message = f"{_where(error, path)}{error.message}"
        error.args = (error.message,)
        raise
    except Exception as error:  # the user's own code may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise KernelError(f"{_where(error, path)}the kernel's own code failed with {reason}") from error


def _where(error: BaseException, path: Path) -> str:
    """The last line of the user's file that led to an error, as "file:line: "."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}: "
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}: " if lines else ""
