"""The version of the code that measured, and the machine. Results of other code are not reused."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

import umpc

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "umpc",
    "umpc_papers",
    "native",
    "reproduction/figures",
    "reproduction/baselines",
    "bench/harness.py",
    "bench/simulated.py",
    "bench/simulated_study.py",
    "bench/work.py",
)
"""The files that a number can depend on."""


@cache
def code_version() -> str:
    """umpc's version, the last commit of CODE, and a hash of the changes since then.

    Without git the hash covers the files themselves.
    """
    try:
        commit = _git("log", "-1", "--format=%h", "--", *CODE)
        changed = _git("diff", "HEAD", "--", *CODE) + _git(
            "ls-files", "--others", "--exclude-standard", "--", *CODE
        )
    except (OSError, subprocess.CalledProcessError):
        folders = ("umpc", "umpc_papers", "bench", "reproduction")
        files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
        commit, changed = "no git", "".join(file.read_text(encoding="utf-8") for file in files)
    suffix = f"+{hashlib.sha256(changed.encode()).hexdigest()[:8]}" if changed else ""
    return f"umpc {umpc.__version__}, {commit}{suffix}"


def _git(*arguments: str) -> str:
    ended = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


def environment() -> dict[str, str | int]:
    """The versions and the machine that a figure is measured with."""
    cores = os.cpu_count() or 1
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "umpc": umpc.__version__,
        "cores": cores,
    }
