"""A namespace without a network, and the wheel of a release that was installed in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.release import build, types


@pytest.fixture(scope="session")
def alone() -> Iterator[tuple[str, ...]]:
    """Provide the words that run a command in a namespace that has only its own loopback."""
    assert shutil.which("ip"), "this test needs ip"
    name = f"umpc-alone-{os.getpid()}"
    within = ("ip", "netns", "exec", name)
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run([*within, "ip", "link", "set", "lo", "up"], check=True)
        yield within
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, alone: tuple[str, ...]) -> Path:
    """Provide the `bin` of an empty environment with a release's wheel, by docs/releasing.md."""
    folder = tmp_path_factory.mktemp("wheel")
    release, environment = folder / "release", folder / "umpc"
    build(release)
    types("download", release, {})
    shown = types("install-apart", release, {"/opt/umpc": str(environment)}, alone)
    assert "Successfully installed" in shown
    return environment / "bin"
