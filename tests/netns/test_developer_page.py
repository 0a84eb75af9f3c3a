"""CONTRIBUTING.md from a clone, in a namespace without a network. `make netns-test`, as root.

A folder first gets all packages, from a registry. In the namespace pip knows this folder only. The
test runs the page's quick commands, and names each other one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.document_blocks import ROOT, blocks

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
QUICK = ("make demo", "make proto", "make settings", "make architecture", "make install")
"""Commands that need no more than the packages of the extras demo and dev, in this order."""
LEFT = {
    "`.ci/run` runs it": ("make lint", "make test"),
    "its tests are those of `make test`, and longer ones": (
        "make contract",
        "make long",
        "make audit",
    ),
    "it measures for minutes": ("make bench", "make figures", "make peers", "make tutorial"),
    "it needs programs of Debian, npm or docker": (
        "make compose-test",
        "make native-emulated",
        "make test-alerts",
        "make test-objects",
        "make test-pages",
        "make test-r",
        "make test-sign-in",
        "make test-sql",
    ),
    "it needs a registry of packages": (
        "make docs",
        "make oracles",
        "make release",
        "make requirements",
    ),
    "the installation compiles the gate, too": ("make native",),
    "it needs a state of former times": ("make upgrade-test",),
}
"""Why a command of the page is left out → these commands."""


def test_each_command_of_the_page_is_run_here_or_left_out_for_a_reason():
    named = [*QUICK, *(each for commands in LEFT.values() for each in commands)]
    assert sorted(named) == sorted(re.findall(r"^\| `(make [\w-]+)` \|", PAGE, re.MULTILINE))
    assert "`make help` lists all commands" in PAGE


@pytest.mark.timeout(3600)
def test_a_developer_follows_the_page_from_a_clone(alone, tmp_path):
    clone, packages = tmp_path / "umpc", tmp_path / "packages"
    ended(["git", "clone", "--quiet", str(ROOT), str(clone)], tmp_path)
    needed = tomllib.loads((clone / "pyproject.toml").read_text("utf-8"))["build-system"]
    wheels = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(packages)]
    editable = "editables"  # hatchling asks for it where an installation uses the code in place
    ended([*wheels, f"{clone}[demo,dev]", *needed["requires"], editable], tmp_path)
    home = tmp_path / "home"
    links = home / ".local" / "bin"
    path = (str(links), str(Path(sys.executable).parent), os.environ["PATH"])
    given = {
        "HOME": str(home),
        "PATH": os.pathsep.join(path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(packages),
        "PIP_NO_INDEX": "1",
    }

    def types(text: str) -> str:
        return ended([*alone, "sh", "-ec", text], clone, given)

    listed = types("make help")
    assert all(each.removeprefix("make ") in listed for each in QUICK)
    printed = {each: types(each) for each in QUICK}
    assert "epsilon" in printed["make demo"] and str(links) in printed["make install"]
    assert types("umpc --version").startswith("umpc, version ")
    (narrow,) = (each for each in blocks(PAGE) if each.name == "narrow")
    assert re.search(r"\d passed", types(narrow.text))
    assert types("git status --porcelain") == "", "the page's commands make what is stored"


def ended(words: list[str], folder: Path, given: dict[str, str] | None = None) -> str:
    """Run a command to its end. Args: given: its environment. Returns: what it printed.

    Raises: AssertionError with the end of both outputs, where it fails.
    """
    done = subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout
