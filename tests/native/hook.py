"""`native/build_hook.py` as a module, which is not part of a package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import umpc

FILE = Path(umpc.__file__).parents[1] / "native" / "build_hook.py"


def load(file: Path = FILE) -> ModuleType:
    """Load the file, or a copy of it that builds in another folder."""
    spec = importlib.util.spec_from_file_location("build_hook", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOK = load()
