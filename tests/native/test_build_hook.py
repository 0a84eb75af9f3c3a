"""The build compiles the gate if it can, and makes a wheel without it if it cannot."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from tests.native.hook import FILE, HOOK, load
from umpc import native as library

ROOT = FILE.parents[1]


@pytest.fixture
def hook(monkeypatch, tmp_path) -> ModuleType:
    """The hook of another source tree, which has the library of an older build."""
    copy = tmp_path / FILE.relative_to(ROOT)
    copy.parent.mkdir()
    copy.write_bytes(FILE.read_bytes())
    found = load(copy)
    found.LIBRARY.parent.mkdir(parents=True)
    found.LIBRARY.write_bytes(b"old")
    for name in ("CFLAGS", "LDFLAGS", "ARCHFLAGS", found.SETTING):
        monkeypatch.delenv(name, raising=False)
    return found


def compiler(folder: Path, script: str) -> str:
    """A program in the place of a C compiler."""
    file = folder / "cc"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def wheel_data() -> dict:
    return {"force_include": {}, "pure_python": True}


def test_with_a_compiler_the_wheel_has_the_gate_and_names_its_platform(monkeypatch, hook, tmp_path):
    """The compiler gets its options and those of ARCHFLAGS."""
    seen = tmp_path / "seen"
    script = f'echo "$@" > {seen}; while [ "$1" != -o ]; do shift; done; echo new > "$2"'
    monkeypatch.setenv("CC", compiler(tmp_path, script))
    monkeypatch.setenv("ARCHFLAGS", "-arch x86_64 -arch arm64")
    data = wheel_data()
    hook.add_to_wheel(data)
    assert data["force_include"] == {str(hook.LIBRARY): "umpc/native/_gate.abi3.so"}
    assert data["pure_python"] is False
    assert data["tag"] == f"cp311-abi3-{hook.platform_tag()}" and "-" not in hook.platform_tag()
    assert hook.LIBRARY.read_text() == "new\n"
    assert "-shared" in seen.read_text() and "-arch x86_64 -arch arm64" in seen.read_text()


@pytest.mark.parametrize("script", [None, "echo 'kernel.c:1: no AES' >&2; exit 1"])
def test_without_one_that_works_the_wheel_is_pure(monkeypatch, hook, tmp_path, capsys, script):
    """No library of an older build is left, which would be another wheel's."""
    words = "/nonexistent/cc" if script is None else compiler(tmp_path, script)
    monkeypatch.setenv("CC", words)
    data = wheel_data()
    hook.add_to_wheel(data)
    assert data == wheel_data() and not hook.LIBRARY.exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("umpc is built without the compiled gate: ")
    assert ("does not start" if script is None else "no AES") in line


def test_a_release_demands_the_gate(monkeypatch, hook):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv(hook.SETTING, "1")
    with pytest.raises(hook.NotBuilt, match="does not start"):
        hook.add_to_wheel(wheel_data())


def test_a_pure_wheel_can_be_demanded(monkeypatch, hook, tmp_path):
    monkeypatch.setenv("CC", compiler(tmp_path, "echo must not run >&2; exit 1"))
    monkeypatch.setenv(hook.SETTING, "0")
    data = wheel_data()
    hook.add_to_wheel(data)
    assert data == wheel_data() and not hook.LIBRARY.exists()


def test_without_any_compiler_the_message_says_what_to_do(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HOOK.NotBuilt, match="install one, or name it in CC"):
        HOOK.compiler()


def test_the_build_and_the_program_name_one_file_and_one_version():
    assert HOOK.LIBRARY.relative_to(ROOT) == library.FILE.relative_to(ROOT)
    source = HOOK.SOURCE.read_text()
    assert f"#define KERNEL_VERSION {library.VERSION} " in source
    for name, kind in (("AESNI", "AES-NI"), ("VAES256", "VAES-256")):
        assert f"{name} = {library.KINDS[kind]}" in source
    assert f"ARM = {library.KINDS['ARM']} " in source


def test_the_release_configuration_demands_the_gate_on_linux_and_macos():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    config = project["tool"]["cibuildwheel"]
    assert config["environment"]["UMPC_BUILD_NATIVE"] == "1"
    assert config["macos"]["environment"]["UMPC_BUILD_NATIVE"] == "1"
    assert config["build"] == f"{HOOK.PYTHON_TAG.split('-')[0]}-*"
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["path"] == (
        FILE.relative_to(ROOT).as_posix()
    )
