"""Results of the last calls, for the members of one process that all do the same public work.

A process may play many nodes of one study (`umpc node start --many`, a simulation). Each of them
checks the same members, signatures and openings. The second node finds the result of the first one
if its arguments are the very objects, not only equal ones: no object here ever changes, so neither
does the result. Only public facts are remembered, and only successes: a failure raises anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Remembered(Generic[Result]):
    """The results of the last calls of one function. Args: most: number of calls."""

    def __init__(self, most: int = 4):
        self._most = most
        self._calls: tuple[tuple[tuple[object, ...], object, Result], ...] = ()

    def of(
        self, objects: tuple[object, ...], make: Callable[[], Result], basis: object = None
    ) -> Result:
        """Return the result for these objects, and make it if it is not known.

        Args:
            objects: arguments that are compared by identity; none of them ever changes.
            basis: all else that the result depends on; it is compared by value.

        Raises: as `make`.
        """
        for known, other, result in self._calls:
            same = all(mine is its for mine, its in zip(objects, known, strict=True))
            if same and other == basis:
                return result
        result = make()
        # A new tuple: another thread may read the former one, or make the same result meanwhile.
        self._calls = (*self._calls, (objects, basis, result))[-self._most :]
        return result

    def forget(self) -> None:
        """Drop all results."""
        self._calls = ()
