"""Every block of the documents that is marked to run runs, each page from an empty folder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.document_blocks import ROOT, Reader, blocks, unmarked

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in ("", "docs", "umpc_papers/docs")
    for path in sorted((ROOT / folder).glob("*.md"))
}
MARKED = {name: text for name, text in PAGES.items() if any(each.runs for each in blocks(text))}
DEMOS = ("docs/demo.md",)
"""Pages of many demos, which take minutes."""
ROLES = {
    "statistician": "docs/statistician.md",
    "site administrator": "docs/site.md",
    "authority": "docs/authority.md",
    "security reviewer": "docs/threats.md",
    "decides about data": "docs/decide.md",
    "developer": "CONTRIBUTING.md",
}
NAMED_BY = {
    "CONTRIBUTING.md": "tests/netns/test_developer_page.py",
    "docs/day_two.md": "tests/system/test_day_two.py",
    "docs/releasing.md": "tests/deploy/test_release.py",
    "docs/site.md": "tests/system/test_site_page.py",
    "docs/statistician.md": "tests/netns/test_site_page.py",
}
"""Pages whose blocks have names, and the test that types them."""


def read(name: str, folder: Path) -> None:
    Reader(folder).reads(MARKED[name])


@pytest.mark.parametrize("name", [name for name in MARKED if name not in DEMOS])
def test_a_page_leads_from_an_empty_folder_by_its_own_words(name, tmp_path):
    read(name, tmp_path)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", DEMOS)
def test_every_demo_runs(name, tmp_path):
    read(name, tmp_path)


def test_every_role_has_a_page_whose_commands_run():
    assert {role for role, page in ROLES.items() if page in {*MARKED, *NAMED_BY}} == set(ROLES)
    assert all((ROOT / test).is_file() for test in NAMED_BY.values())
    for name, text in PAGES.items():
        named = {each.name for each in blocks(text) if each.kind == "run" and each.name}
        assert not named or name in NAMED_BY, f"nothing runs {named} of {name}"
        assert len(re.findall(r"^<!-- (?:run|file|shows|has)\b", text, re.M)) == len(blocks(text))


@pytest.mark.parametrize("name", PAGES)
def test_every_block_runs_or_is_marked_as_not_meant_to(name):
    assert unmarked(PAGES[name]) == [], f"{name}: begin with <!-- run --> or <!-- not run: why -->"


def test_a_block_without_a_mark_is_found():
    assert unmarked("```sh\nls\n```\n\n<!-- not run: needs a disk -->\n```sh\nls\n```\n") == [1]
    assert unmarked("<!-- run -->\n```sh\nls\n```\nwords\n```text\nls\n```\n") == [6]
    with pytest.raises(tomllib.TOMLDecodeError):
        unmarked("<!-- not run: a part -->\n```toml\na = 1\na = 2\n```\n")


RIGHT = """
<!-- has: data.csv -->

<!-- run -->
```sh
umpc kernels explain kendall_tau --field age=0:127 --field balance=0:9 > told
umpc kernels explain unknown --field age=0:127   # exit code 12
umpc kernels explain kendall_tau --field age=0:127 \\
    --field balance=0:9
```

<!-- shows -->
```text
kernel … sign(a.balance - b.balance)
sensitivity   2 per edge …
```

<!-- file: told.toml -->
```toml
address = "127.0.0.1:7100"
```
"""


def test_a_page_that_is_wrong_is_found(tmp_path):
    Reader(tmp_path).reads(RIGHT)
    assert (tmp_path / "told").read_text().count("kernel") and (tmp_path / "data.csv").exists()
    assert "7100" not in (tmp_path / "told.toml").read_text()
    for good, bad in {
        "kendall_tau --field age=0:127 \\": "kendal_tau --field age=0:127 \\",
        "sensitivity   2": "sensitivity   3",
        "exit code 12": "exit code 13",
        "> told": "> nowhere/told",
    }.items():
        with pytest.raises((AssertionError, OSError)):
            Reader(tmp_path).reads(RIGHT.replace(good, bad))
    with pytest.raises(ValueError, match="no block follows"):
        blocks("<!-- run -->\nwords\n")
