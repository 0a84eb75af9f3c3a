"""Limits of umpc that are small for one test or one block, through the public doors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import ModuleType
from typing import Any

import umpc.testing
import umpc_papers.testing


class Limit:
    """Give limits of a module other values, until the test or the block ends."""

    def __init__(self, until: ExitStack):
        self._until = until

    def __call__(self, module: ModuleType, **values: Any) -> None:
        papers = module.__name__.partition(".")[0] == "umpc_papers"
        door = umpc_papers.testing.limited if papers else umpc.testing.limited
        self.hold(door(module, **values))

    def hold(self, context: AbstractContextManager[Any]) -> None:
        """Enter another context, such as that of `lying`, for as long."""
        self._until.enter_context(context)


@contextmanager
def limits() -> Iterator[Limit]:
    """Limits that are small until the block ends."""
    with ExitStack() as until:
        yield Limit(until)
