"""The compiled gate of this source tree: the installed one if it is newer than its sources."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.native.hook import HOOK
from umpc import native
from umpc import native as library


def is_current() -> bool:
    """Whether the library of the source tree was compiled after its sources were written."""
    if not library.FILE.exists():
        return False
    sources = HOOK.SOURCE.parent.glob("*.[ch]")
    return all(library.FILE.stat().st_mtime >= each.stat().st_mtime for each in sources)


@pytest.fixture(scope="session")
def gate(tmp_path_factory) -> ModuleType:
    """`umpc.native` with the gate of these sources. Without a compiler it has no kind."""
    if is_current():
        yield native
        return
    file = tmp_path_factory.mktemp("gate") / library.FILE.name
    try:
        compiled = library.load(HOOK.build(file))
    except HOOK.NotBuilt:
        compiled = None
    with pytest.MonkeyPatch.context() as patch:
        for module in (native, library):
            patch.setattr(module, "LIBRARY", compiled)
        library.kinds.cache_clear()
        yield native
    library.kinds.cache_clear()
