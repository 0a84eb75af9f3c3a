"""Compile the gate into umpc's wheel, if there is a C compiler.

hatchling calls `GateHook` (pyproject.toml). `python native/build_hook.py` compiles into the source
tree. UMPC_BUILD_NATIVE in the environment decides:

| UMPC_BUILD_NATIVE | the build |
|---|---|
| not set | compiles; if that fails, it makes a wheel without the gate and says so |
| 1 | compiles; if that fails, the build fails |
| 0 | makes a wheel without the gate, which fits every platform |

Without the gate umpc computes in numpy. CC names a compiler. CFLAGS, LDFLAGS and, for a universal
binary on macOS, ARCHFLAGS are more options for it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "native" / "kernel.c"
LIBRARY = ROOT / "umpc" / "native" / "_gate.abi3.so"
OPTIONS = ("-O3", "-std=gnu11", "-Wall", "-Wextra", "-fPIC", "-shared", "-g0")
SETTING = "UMPC_BUILD_NATIVE"
PYTHON_TAG = "cp311-abi3"


class NotBuilt(Exception):
    """The gate was not compiled. The message says why in one line."""


def compiler() -> list[str]:
    """The words that start the C compiler. Raises: NotBuilt."""
    named = os.environ.get("CC")
    if named:
        return shlex.split(named)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise NotBuilt("there is no C compiler; install one, or name it in CC")


def command(target: Path, source: Path = SOURCE) -> list[str]:
    """The command that compiles the library. Raises: NotBuilt."""
    more = [os.environ.get(name, "") for name in ("CFLAGS", "ARCHFLAGS", "LDFLAGS")]
    options = [*OPTIONS, *shlex.split(" ".join(more))]
    return [*compiler(), *options, "-o", str(target), str(source)]


def build(target: Path = LIBRARY) -> Path:
    """Compile the library. A file that stands there, perhaps of an older build, goes first.

    Raises: NotBuilt.
    """
    target.unlink(missing_ok=True)
    if sys.platform == "win32":
        raise NotBuilt("the gate is not compiled on Windows")
    words = command(target)
    try:
        ended = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    except OSError as error:
        raise NotBuilt(f"{words[0]} does not start: {error.strerror}") from None
    if ended.returncode:
        said = ended.stderr.strip().splitlines() or ["it said nothing"]
        raise NotBuilt(f"{words[0]} ended with code {ended.returncode}: {said[-1]}")
    return target


def build_if_possible() -> Path | None:
    """Compile as UMPC_BUILD_NATIVE says; None for a wheel without the gate. Raises: NotBuilt."""
    setting = os.environ.get(SETTING, "")
    if setting == "0":
        LIBRARY.unlink(missing_ok=True)
        return None
    try:
        return build()
    except NotBuilt as reason:
        if setting == "1":
            raise
        print(f"umpc is built without the compiled gate: {reason}", file=sys.stderr)
        return None


def platform_tag() -> str:
    """The platform of a wheel that is built here; auditwheel and delocate replace it."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def add_to_wheel(build_data: dict[str, Any]) -> None:
    """Put the library into the wheel that hatchling makes, and name its platform."""
    library = build_if_possible()
    if library is not None:
        build_data["force_include"][str(library)] = "umpc/native/_gate.abi3.so"
        build_data["pure_python"] = False
        build_data["tag"] = f"{PYTHON_TAG}-{platform_tag()}"


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # `make native` and the tests run this file without hatchling
    pass
else:

    class GateHook(BuildHookInterface):
        """hatchling's hook: it runs before a wheel is made, also before an editable one."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if version == "editable":
                build_if_possible()  # the code is used in place, and so is the library
            elif self.target_name == "wheel":
                add_to_wheel(build_data)


if __name__ == "__main__":
    try:
        print(build())
    except NotBuilt as reason:
        sys.exit(f"error: {reason}")
