"""Build a release into a folder and try it: `make release`, or `python deploy/release.py`.

The folder then has the source archive, the wheels, the pinned requirements, the bill of materials,
the notes, the image where a docker engine answers, and SHA256SUMS of all of them. Each wheel that
this machine can load is installed into an empty environment of each Python that is at hand, and
runs a study there. docs/releasing.md says who does what with the files.

It needs the extra `release` of this project, git, and on Linux a C compiler.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINNED = ROOT / "deploy" / "requirements.txt"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
ARM = "aarch64-linux-gnu-gcc"
BASE = "python:3.11-slim"
MOST_OVER_BASE = 300_000_000
"""Bytes that the image may have over its base."""
TABLE = "age,crp\n" + "".join(f"{20 + i * 7 % 60},{i * i % 97}\n" for i in range(40))
STUDY = ("demo", "--csv", "table.csv", "--fields", "age,crp", "--format", "json")
GATE = "from umpc.native import LIBRARY; print(LIBRARY is not None)"


class NotReleased(Exception):
    """A step failed. The message says which one, in one line."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="an empty or new folder")
    parser.add_argument(
        "--python", nargs="+", default=PYTHONS, help="the Pythons in which wheels are tried"
    )
    parser.add_argument(
        "--cibuildwheel", action="store_true", help="wheels in manylinux' containers, or on a Mac"
    )
    parser.add_argument("--no-image", action="store_true", help="build no image")
    parser.add_argument("--final", action="store_true", help="an error unless HEAD is the tag")
    given = parser.parse_args()
    try:
        release(given)
    except NotReleased as reason:
        sys.exit(f"error: {reason}")


def release(given: argparse.Namespace) -> None:
    """Build everything, try the wheels, and write SHA256SUMS. Raises: NotReleased."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    lacking = list(not_final(version, changes, said("git", "status", "--porcelain"), tags()))
    if given.final and lacking:
        raise NotReleased("; ".join(lacking))
    into = given.into.resolve()
    if into.is_dir() and any(into.iterdir()):
        raise NotReleased(f"{into} is not empty; remove it, or name another folder by --into")
    into.mkdir(parents=True, exist_ok=True)
    source = source_archive(into)
    wheels = by_cibuildwheel(source, into) if given.cibuildwheel else by_compiler(source, into)
    wheels.append(wheel(source, into, UMPC_BUILD_NATIVE="0"))
    pinned = into / f"umpc-{version}-requirements.txt"
    pinned.write_text(pinned_with(PINNED.read_text("utf-8"), version, wheels))
    listed = into / f"umpc-{version}-sbom.json"
    bill = ("requirements", PINNED, "--pyproject", ROOT / "pyproject.toml", "--output-reproducible")
    run("cyclonedx-py", *bill, "--output-format", "JSON", "--output-file", listed)
    (into / f"umpc-{version}-notes.md").write_text(notes(version, changes, lacking), "utf-8")
    tried = [try_all(python, wheels, source, pinned) for python in given.python]
    if not any(tried):
        raise NotReleased(f"no wheel was tried: none of {', '.join(given.python)} is here")
    if not given.no_image:
        image(version, into)
    (into / "SHA256SUMS").write_text(sums(into))
    for each in sorted(into.iterdir()):
        print(f"{each.stat().st_size:>12,} bytes  {each.name}")
    for reason in lacking:
        print(f"a rehearsal, and no release: {reason}")


# --- text -----------------------------------------------------------------------------------------


def not_final(version: str, changes: str, changed: str, tags: Sequence[str]) -> Iterator[str]:
    """Yield what HEAD lacks to be the release of a version; nothing if it is one.

    Args: changed: what `git status --porcelain` prints; tags: those of HEAD.
    """
    if f"## [{version}]" not in changes:
        yield f"CHANGELOG.md has no section [{version}]"
    if changed.strip():
        yield f"files that are not committed: {len(changed.strip().splitlines())}"
    if f"v{version}" not in tags:
        yield f"the tag v{version} is not at HEAD"


def notes(version: str, changes: str, lacking: Sequence[str]) -> str:
    """The notes: the section of the version, or [Unreleased] for a rehearsal."""
    sections = dict(re.findall(r"^## \[(.*?)\].*?\n(.*?)(?=^## |\Z)", changes, re.M | re.S))
    section = sections.get(version) or sections.get("Unreleased", "")
    rehearsal = "".join(f"A rehearsal, and no release: {reason}.\n" for reason in lacking)
    head = said("git", "rev-parse", "HEAD").strip()
    return f"# umpc {version}\n\nCommit {head}.\n{rehearsal}\n{section.strip()}\n"


def pinned_with(requirements: str, version: str, wheels: Sequence[Path]) -> str:
    """The pinned packages, and umpc itself by the digests of its wheels."""
    digests = "".join(f" \\\n    --hash=sha256:{sha256(file)}" for file in wheels)
    return f"{requirements.rstrip()}\numpc=={version}{digests}\n"


def sums(folder: Path) -> str:
    """A line for each file, as `sha256sum --check` reads it."""
    return "".join(f"{sha256(file)}  {file.name}\n" for file in sorted(folder.iterdir()))


def sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


# --- builds ---------------------------------------------------------------------------------------


def source_archive(into: Path) -> Path:
    return built("--sdist", ROOT, into, {})


def wheel(source: Path, into: Path, **settings: str) -> Path:
    """A wheel, made from the source archive, so that the archive is proven to be complete."""
    return built("--wheel", source, into, settings)


def built(kind: str, source: Path, into: Path, settings: dict[str, str]) -> Path:
    """The one file that uv's build of a source makes, moved into a folder.

    The time of the commit is the time of all files in it, so a second build has the same bytes.
    """
    time = {"SOURCE_DATE_EPOCH": said("git", "log", "-1", "--format=%ct").strip()}
    with tempfile.TemporaryDirectory(prefix="umpc-release-") as folder:
        to = ("--out-dir", folder, "--no-create-gitignore")
        run("uv", "build", "--quiet", kind, *to, source, **settings, **time)
        (file,) = Path(folder).iterdir()
        return Path(shutil.move(file, into / file.name))


def by_compiler(source: Path, into: Path) -> list[Path]:
    """Wheels with the gate by this machine's compilers, with the tag of the C library they need.

    The gate calls nothing but the C library, so another processor family's needs a compiler only.
    """
    if sys.platform != "linux":
        print(f"no wheel with the gate: on {sys.platform} they are cibuildwheel's", flush=True)
        return []
    settings = [{}]
    if platform.machine() == "x86_64" and shutil.which(ARM):
        settings.append({"CC": ARM, "_PYTHON_HOST_PLATFORM": "linux-aarch64"})
    found = []
    for each in settings:
        with tempfile.TemporaryDirectory(prefix="umpc-release-") as folder:
            local = wheel(source, Path(folder), UMPC_BUILD_NATIVE="1", **each)
            repaired = Path(folder) / "repaired"
            run("auditwheel", "repair", "--wheel-dir", repaired, local)
            (file,) = repaired.iterdir()
            found.append(Path(shutil.move(file, into / file.name)))
    return found


def by_cibuildwheel(source: Path, into: Path) -> list[Path]:
    """Wheels with the gate as pyproject.toml asks for them: Linux needs a docker engine."""
    run("cibuildwheel", "--output-dir", into, source)
    return sorted(into.glob("*-abi3-*.whl"))


def image(version: str, into: Path) -> None:
    """Build the image, hold its size, and store it for `docker load`. Raises: NotReleased."""
    engine = ["docker", "info"]
    if not shutil.which("docker") or subprocess.run(engine, capture_output=True).returncode:
        print("no image: no docker engine answers here", flush=True)
        return
    name = f"umpc:{version}"
    run("docker", "build", "--network", "host", "--tag", name, ROOT)
    size, base = (
        int(said("docker", "image", "inspect", "--format", "{{.Size}}", each))
        for each in (name, BASE)
    )
    print(f"{name}: {(size - base) / 1e6:.0f} MB over {BASE} of {base / 1e6:.0f} MB", flush=True)
    if size - base > MOST_OVER_BASE:
        raise NotReleased(f"the image has more than {MOST_OVER_BASE / 1e6:.0f} MB over its base")
    words = ["docker", "save", name]
    file = into / f"umpc-{version}-image-{platform.machine()}.tar.gz"
    with gzip.open(file, "wb", 6) as to, subprocess.Popen(words, stdout=subprocess.PIPE) as saving:
        shutil.copyfileobj(saving.stdout, to)
    if saving.returncode:
        raise NotReleased("`docker save` failed")


# --- trials ---------------------------------------------------------------------------------------


def try_all(python: str, wheels: Sequence[Path], source: Path, pinned: Path) -> bool:
    """Install the release in each way that docs/releasing.md names, and run a study in each.

    Returns: whether this Python is here.
    """
    asked = "import sys; print(*sys.version_info[:3], sep='.')"
    at = shutil.which(python)
    version = subprocess.run([at, "-c", asked], capture_output=True, text=True) if at else None
    if version is None or version.returncode:
        print(f"not tried: {python} is not here", flush=True)
        return False
    pure = wheels[-1]
    own = f"_{platform.machine()}", "_universal2"
    has_gate = any(word in each.name for each in wheels for word in own)
    ways = [("the pinned wheel", ("--require-hashes", "--requirement", pinned), has_gate)]
    ways += [("the pure wheel", (pure,), False)]
    ways += [("the source archive", (source,), shutil.which("cc") is not None)]
    for way, words, gate in ways:
        try_one(at, words, pinned.parent, gate)
        print(f"tried with Python {version.stdout.strip()}: {way}", flush=True)
    return True


def try_one(python: str, words: Sequence[str | Path], folder: Path, gate: bool) -> None:
    """Install into an empty environment, and run a study between processes in an empty folder.

    Args: words: of pip, to install; folder: of the wheels; gate: whether the compiled gate is in.
    Raises: NotReleased.
    """
    with tempfile.TemporaryDirectory(prefix="umpc-release-") as name:
        place, empty = Path(name) / "environment", Path(name) / "empty"
        run("uv", "venv", "--quiet", "--python", python, place)
        install = ("uv", "pip", "install", "--quiet", "--python", place, "--find-links", folder)
        run(*install, *words)
        empty.mkdir()
        (empty / "table.csv").write_text(TABLE)
        if said(place / "bin" / "python", "-c", GATE, cwd=empty).strip() != str(gate):
            raise NotReleased(f"{words[-1]}: the gate is {'not ' * gate}in it")
        said(place / "bin" / "umpc", "--version", "--verbose", cwd=empty)
        report = json.loads(said(place / "bin" / "umpc", *STUDY, cwd=empty))
        if not isinstance(report["estimate"], float):
            raise NotReleased(f"{words[-1]}: the study's report has no estimate")


# --- commands -------------------------------------------------------------------------------------


def tags() -> list[str]:
    return said("git", "tag", "--points-at", "HEAD").split()


def said(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it prints. Raises: NotReleased."""
    ended = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True)
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or ["it said nothing"]
        raise NotReleased(f"`{' '.join(map(str, words))}`: {lines[-1]}")
    return ended.stdout


def run(*words: str | Path, **settings: str) -> None:
    """Run a tool of this environment, and show what it prints. Raises: NotReleased."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **settings}
    program = shutil.which(str(words[0]), path=path)
    if program is None:
        raise NotReleased(f"{words[0]} is not here; `pip install '.[release]'` brings its tools")
    ended = subprocess.run([program, *map(str, words[1:])], cwd=ROOT, env=environment)
    if ended.returncode:
        raise NotReleased(f"`{' '.join(map(str, words))}` ended with code {ended.returncode}")


if __name__ == "__main__":
    main()
