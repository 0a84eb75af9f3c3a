"""deploy/release.py: what a release says of itself, and a whole one, taken as the page says."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import umpc
from tests.support.release import ROOT, SCRIPT, build, script, sign, types

RELEASE = script()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
CHANGES = """# Changelog

## [Unreleased]

### Fixed

- Of tomorrow.

## [0.3.0] - 2026-12-01

### Changed

- Of today.

## [0.2.0] - 2026-11-01

- Of yesterday.
"""


def test_the_notes_are_the_section_of_the_version():
    told = RELEASE.notes("0.3.0", CHANGES, [])
    assert told.startswith("# umpc 0.3.0\n\nCommit ") and told.endswith(
        "### Changed\n\n- Of today.\n"
    )
    assert "rehearsal" not in told


def test_a_rehearsal_has_the_unreleased_changes_and_says_what_it_is():
    lacking = list(RELEASE.not_final("0.4.0", CHANGES, " M README.md\n?? new\n", ["v0.3.0"]))
    assert lacking == [
        "CHANGELOG.md has no section [0.4.0]",
        "files that are not committed: 2",
        "the tag v0.4.0 is not at HEAD",
    ]
    told = RELEASE.notes("0.4.0", CHANGES, lacking)
    assert all(f"A rehearsal, and no release: {reason}.\n" in told for reason in lacking)
    assert told.endswith("- Of tomorrow.\n") and "Of today" not in told


def test_a_tagged_commit_lacks_nothing():
    assert list(RELEASE.not_final("0.3.0", CHANGES, "", ["v0.3.0"])) == []


def test_umpc_is_pinned_to_the_digests_of_its_wheels(tmp_path):
    wheels = [tmp_path / "a.whl", tmp_path / "b.whl"]
    for each in wheels:
        each.write_bytes(each.name.encode())
    digests = [hashlib.sha256(each.name.encode()).hexdigest() for each in wheels]
    pinned = RELEASE.pinned_with("numpy==2.4.6\n", "0.3.0", wheels)
    assert pinned == (
        f"numpy==2.4.6\numpc==0.3.0 \\\n    --hash=sha256:{digests[0]} \\\n"
        f"    --hash=sha256:{digests[1]}\n"
    )
    assert RELEASE.sums(tmp_path) == f"{digests[0]}  a.whl\n{digests[1]}  b.whl\n"


@pytest.fixture
def tree(tmp_path) -> Path:
    """A committed source tree of the version 0.3.0, as far as the script looks at it first."""
    folder = tmp_path / "tree"
    (folder / "deploy").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "deploy")
    (folder / "CHANGELOG.md").write_text(CHANGES)
    (folder / "pyproject.toml").write_text('[project]\nversion = "0.3.0"\n')
    git = ("git", "-c", "user.name=n", "-c", "user.email=n@example.org")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "A tree")):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


def refused(tree: Path, *options: str) -> str:
    """Run the script of a tree, which must refuse. Returns: its last line."""
    words = [sys.executable, str(tree / "deploy" / "release.py"), *options]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert ended.returncode == 1
    return ended.stderr.splitlines()[-1]


def test_a_folder_with_files_is_left_alone(tree):
    said = refused(tree, "--into", str(tree))
    assert said == f"error: {tree} is not empty; remove it, or name another folder by --into"


def test_a_final_release_is_refused_where_something_is_missing(tree):
    """Once the tag is there, the next step begins, which finds the folder of the test."""
    words = ("--final", "--into", str(tree))
    assert refused(tree, *words) == "error: the tag v0.3.0 is not at HEAD"
    subprocess.run(["git", "tag", "v0.3.0"], cwd=tree, check=True)
    assert "is not empty" in refused(tree, *words)
    (tree / "forgotten").touch()
    assert refused(tree, *words) == "error: files that are not committed: 1"


def test_one_version_is_everywhere():
    assert umpc.__version__ == VERSION
    description = (ROOT / "clients" / "r" / "DESCRIPTION").read_text(encoding="utf-8")
    assert f"\nVersion: {VERSION}\n" in description


@pytest.mark.timeout(3600)
def test_a_release_is_built_tried_signed_checked_and_installed(tmp_path):
    """By docs/releasing.md, from the builder's folder to a site's environment."""
    folder = tmp_path / "release"
    printed = build(folder)
    for way in ("the pinned wheel", "the pure wheel", "the source archive"):
        assert f": {way}\n" in printed
    names = {each.name for each in folder.iterdir()}
    ends = ("requirements.txt", "sbom.json", "notes.md", "py3-none-any.whl")
    assert {f"umpc-{VERSION}-{end}" for end in ends} | {f"umpc-{VERSION}.tar.gz"} < names
    bill = json.loads((folder / f"umpc-{VERSION}-sbom.json").read_text())
    assert bill["metadata"]["component"]["version"] == VERSION
    assert "numpy" in {each["name"] for each in bill["components"]}

    asked = ["--print-build-identifiers", "--platform", "linux"]
    built_by_it = RELEASE.said(Path(sys.executable).parent / "cibuildwheel", *asked)
    assert {f"cp311-{each}linux_x86_64" for each in ("many", "musl")} < set(built_by_it.split())

    again = tmp_path / "again"
    again.mkdir()
    source = RELEASE.source_archive(again)
    pure = RELEASE.wheel(source, again, UMPC_BUILD_NATIVE="0")
    for each in (source, pure):
        assert each.read_bytes() == (folder / each.name).read_bytes(), f"{each.name} differs"

    sign(folder)
    types("check", folder, {})
    place = tmp_path / "umpc"
    shown = types("install", folder, {"/opt/umpc": str(place)})
    assert f"umpc, version {VERSION}" in shown
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text().replace("a", "b", 1))
    with pytest.raises(AssertionError):
        types("check", folder, {})


@pytest.mark.timeout(3600)
def test_a_changed_wheel_is_not_installed(tmp_path):
    """Whatever has its name: the requirements have its digest."""
    source = RELEASE.source_archive(tmp_path)
    wheel = RELEASE.wheel(source, tmp_path, UMPC_BUILD_NATIVE="0")
    pinned = tmp_path / f"umpc-{VERSION}-requirements.txt"
    pinned.write_text(RELEASE.pinned_with("", VERSION, [wheel]))
    with wheel.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(AssertionError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        types("install", tmp_path, {"/opt/umpc": str(tmp_path / "umpc")})
    shutil.rmtree(tmp_path / "umpc")
