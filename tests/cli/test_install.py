"""`make install`: completion in three shells, and a manual page with every command."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

from click.shell_completion import get_completion_class

import umpc
from umpc.cli.main import COMMANDS
from umpc.cli.main import umpc as command

ROOT = Path(umpc.__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "docs" / "man_page.py"))["page"]()


def test_the_manual_page_has_every_command_with_its_options():
    headings = re.findall(r"^\.SS umpc ([\w ]+?) \[", PAGE.replace("\\-", "-"), re.MULTILINE)
    assert set(COMMANDS) <= set(headings) and "study run" in headings and "ca list" in headings
    options = PAGE.replace("\\-", "-")
    assert "--while-stdin-open" not in options and "\b" not in options, "hidden"
    for option in ("--records", "--contact", "--metrics"):
        assert f"\\fB{option}" in options
    requests = {line.split()[0] for line in PAGE.splitlines() if line.startswith(".")}
    assert requests == {".TH", ".SH", ".SS", ".B", ".PP", ".TP", ".nf", ".fi"}


def test_troff_takes_the_page_where_it_is_at_hand():
    groff = shutil.which("groff")
    if groff:
        asked = [groff, "-man", "-Tutf8", "-ww", "-z", "-K", "utf8"]
        told = subprocess.run(asked, input=PAGE, capture_output=True, text=True)
        assert told.returncode == 0


def test_the_command_completes_its_own_words(monkeypatch):
    monkeypatch.setenv("COMP_WORDS", "umpc node sta")
    monkeypatch.setenv("COMP_CWORD", "2")
    for shell in ("bash", "zsh", "fish"):
        completion = get_completion_class(shell)(command, {}, "umpc", "_UMPC_COMPLETE")
        found = [each.value for each in completion.get_completions(["node"], "sta")]
        assert found == ["start", "status"], shell


def test_make_install_stores_them():
    asked = ["make", "-n", "install", "PREFIX=/nowhere"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for place in (
        "bin/umpc",
        "share/man/man1/umpc.1",
        "share/bash-completion/completions/umpc",
        "share/zsh/site-functions/_umpc",
        "share/fish/vendor_completions.d/umpc.fish",
    ):
        assert f"/nowhere/{place}" in told, place
    assert "-m compileall -q umpc" in told, "else it is compiled at each start by other users"
