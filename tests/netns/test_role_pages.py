"""Each role's page from an empty folder, in a namespace without a network, by a release's wheel.

docs/site.md, for the administrator of a hospital, is in test_site_page.py, and so is the end of
docs/statistician.md, which needs sites. CONTRIBUTING.md, for developers, is in
test_developer_page.py.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import IO

import pytest

from tests.support.document_blocks import ROOT, Reader

SECONDS = 900
"""For one command, on a machine that does other work."""
PAGES = {
    "authority": ("authority.md",),
    "decides about data": ("decide.md",),
    "security reviewer": ("threats.md",),
    "statistician": ("statistician.md",),
    "site administrator on day two": ("trial.md", "day_two.md"),
}
"""Role → its pages in docs, each of which goes on in the folder of the one before."""


class ReaderApart(Reader):
    """A reader whose commands run elsewhere. Args: within: runs a command there. bin: has umpc."""

    def __init__(self, folder: Path, within: tuple[str, ...], bin: Path):
        super().__init__(folder)
        self._within, self._bin = within, bin

    def executes(self, text: str) -> None:
        subprocess.run([*self._within, self._bin / "python", "-c", text], check=True)

    def started(self, words: list[str], log: IO[bytes]) -> subprocess.Popen:
        pipe, given = subprocess.PIPE, [*self._within, str(self._bin / "umpc"), *words]
        return subprocess.Popen(given, stdin=pipe, stdout=pipe, stderr=log)

    def ended(self, words: list[str]) -> tuple[int, str, str]:
        given = [*self._within, str(self._bin / "umpc"), *words]
        done = subprocess.run(given, input="y\n", capture_output=True, text=True, timeout=SECONDS)
        return done.returncode, done.stdout, done.stderr


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("role", PAGES)
def test_a_role_follows_its_page_by_the_wheel_alone(role, alone, wheel, tmp_path):
    read = "\n".join((ROOT / "docs" / name).read_text("utf-8") for name in PAGES[role])
    if role.endswith("day two"):
        read = re.sub(r"<!-- run: \w+ -->", "<!-- run -->", read)
    ReaderApart(tmp_path, alone, wheel).reads(read)
