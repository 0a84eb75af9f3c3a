"""The compiled gate of this source tree: the installed one if it is newer than its sources."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.native.hook import HOOK
from umpc import native
from umpc.testing import limited


def is_current() -> bool:
    """Whether the library of the source tree was compiled after its sources were written."""
    if not native.FILE.exists():
        return False
    sources = HOOK.SOURCE.parent.glob("*.[ch]")
    return all(native.FILE.stat().st_mtime >= each.stat().st_mtime for each in sources)


@pytest.fixture(scope="session")
def gate(tmp_path_factory) -> ModuleType:
    """`umpc.native` with the gate of these sources. Without a compiler it has no kind."""
    if is_current():
        yield native
        return
    file = tmp_path_factory.mktemp("gate") / native.FILE.name
    try:
        compiled = native.load(HOOK.build(file))
    except HOOK.NotBuilt:
        compiled = None
    with limited(native, LIBRARY=compiled):
        native.kinds.cache_clear()
        yield native
    native.kinds.cache_clear()
