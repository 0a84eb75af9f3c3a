"""deploy/requirements.txt pins every package that the image needs, each with its hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import umpc

ROOT = Path(umpc.__file__).parents[1]
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
TEXT = (ROOT / "deploy" / "requirements.txt").read_text(encoding="utf-8")


def pinned(text: str) -> dict[str, str]:
    """Return package → version. Raises: ValueError for a line without a version or a hash."""
    found = {}
    for entry in text.replace("\\\n", " ").strip().splitlines():
        line, *rest = entry.split("--hash", 1)
        requirement = Requirement(line.strip())
        (version,) = requirement.specifier
        if version.operator != "==" or not rest or not HASH.search(entry):
            raise ValueError(f"{requirement.name} has no version, or no hash")
        found[canonicalize_name(requirement.name)] = version.version
    return found


def test_each_dependency_is_pinned_to_a_version_that_the_project_takes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = pinned(TEXT)
    for needed in map(Requirement, project["dependencies"]):
        version = versions[canonicalize_name(needed.name)]
        assert version in needed.specifier, f"{needed}: run `make requirements`"
    assert len(versions) >= len(project["dependencies"])


def test_no_place_of_download_is_named():
    assert "://" not in TEXT and "--index-url" not in TEXT
