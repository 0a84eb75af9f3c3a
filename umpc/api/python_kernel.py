"""`umpc.kernel`: a Python function as a statistic of one's own.

    @umpc.kernel(estimator="ratio")
    def close_in_age(a, b):
        near = (a.age - b.age < 5) & (b.age - a.age < 5)
        return umpc.select(near, abs(a.balance - b.balance), 0), near

The ratio of the two sums is the mean over the pairs that are near. A single sum is averaged over
all pairs, of which the others count 0.

The function is traced once, where it is defined. A mistake is an error there, with its line. The
processes of a study see the expression that it computes, and never code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, overload

from umpc.coordinator.studyfile import TracedKernel
from umpc.ustat.estimators import find_estimator
from umpc.ustat.text import to_text
from umpc.ustat.tracing import arity, trace_all


class PythonKernel:
    """A traced function. It can still be called.

    Args: estimator: what is made of the kernel's sums, such as "ratio". sampling: "balanced", or
        "two_sample" for a kernel over two classes.
    Raises: KernelError where the function cannot be computed as written.
    """

    def __init__(
        self, function: Callable[..., Any], estimator: str = "mean", sampling: str = "balanced"
    ):
        self.estimator = find_estimator(estimator).name
        self.sampling = sampling
        self.traced = TracedKernel(trace_all(function), arity(function))
        self.name = function.__name__
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *records: Any) -> Any:
        return self._function(*records)

    @property
    def degree(self) -> int:
        """The number of records that the function takes."""
        return self.traced.degree

    @property
    def texts(self) -> tuple[str, ...]:
        """The canonical text of each sum's kernel, as nodes see it."""
        return tuple(map(to_text, self.traced.expressions))

    def __repr__(self) -> str:
        return f"<umpc.kernel {self.name}: {self.estimator} of {'; '.join(self.texts)}>"


@overload
def kernel(function: Callable[..., Any]) -> PythonKernel: ...
@overload
def kernel(
    *, estimator: str = "mean", sampling: str = "balanced"
) -> Callable[[Callable[..., Any]], PythonKernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    estimator: str = "mean",
    sampling: str = "balanced",
) -> PythonKernel | Callable[[Callable[..., Any]], PythonKernel]:
    """Make a statistic of a function over the records of an edge: a decorator.

    Args: as of `PythonKernel`. Raises: KernelError with the line that cannot be computed.
    """
    if function is not None:
        return PythonKernel(function, estimator, sampling)
    return lambda given: PythonKernel(given, estimator, sampling)
