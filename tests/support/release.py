"""A release of this source tree, built as `make release` builds one, and docs/releasing.md's words.

It needs the extra `release`, which `make long` and `make netns-test` install, and a registry of
packages.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import umpc

ROOT = Path(umpc.__file__).parents[1]
SCRIPT = ROOT / "deploy" / "release.py"
PAGE = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- run: ([\w-]+) -->\n```sh\n(.*?)```", PAGE, re.DOTALL))
SIGNER = "releases@example.org"


def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(into: Path) -> str:
    """Build a release without its image, tried in this Python. Returns: what was printed."""
    words = [sys.executable, SCRIPT, "--no-image", "--into", into, "--python", sys.executable]
    return _ended(list(map(str, words)), ROOT)


def sign(folder: Path) -> None:
    """Make the project's key, sign a release by the page's words, and publish the signer."""
    key = folder.parent / "release_key"
    _ended(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], folder)
    types("sign", folder, {"release_key": str(key)})
    public = key.with_suffix(".pub").read_text().split()[:2]
    (folder / "allowed_signers").write_text(" ".join([SIGNER, *public]) + "\n")


def types(block: str, folder: Path, changes: dict[str, str], within: tuple[str, ...] = ()) -> str:
    """Type a block of the page in a folder. Returns: what it printed.

    Args: changes: the page's words → the test's; within: a command that runs another one elsewhere.
    Raises: AssertionError with the outputs, where a command fails.
    """
    text = BLOCKS[block]
    for former, new in {"python3 ": f"{sys.executable} ", **changes}.items():
        text = text.replace(former, new)
    return _ended([*within, "sh", "-ec", text], folder)


def _ended(words: list[str], folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    given = {**os.environ, "PATH": path}
    ended = subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True)
    assert ended.returncode == 0, (words, ended.stdout[-2000:], ended.stderr[-2000:])
    return ended.stdout + ended.stderr
