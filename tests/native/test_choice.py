"""UMPC_NATIVE chooses the gate, and a person is told which one runs."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from umpc import native as library
from umpc.cli.main import umpc as command
from umpc.errors import ConfigError
from umpc.native import CHOSEN, choose, explained, garbled, status

ABLE = ("AES-NI", "VAES-256")


def test_the_fastest_runs_unless_another_is_named():
    for setting in ("", "1", " 1 "):
        assert choose(setting, ABLE) == "VAES-256" and choose(setting, ()) is None
    for setting in ("0", "numpy", "NumPy"):
        assert choose(setting, ABLE) is None
    assert choose("aes-ni", ABLE) == "AES-NI" and choose("VAES-256", ABLE) == "VAES-256"


@pytest.mark.parametrize("setting", ["VAES-512", "ARM", "2", "yes"])
def test_a_kind_that_cannot_run_is_an_error(setting):
    """A test that names a kind must not run another one."""
    with pytest.raises(ConfigError, match=r"one of 0, 1, AES-NI, VAES-256 on this machine, got"):
        choose(setting, ABLE)


def test_people_are_told_which_gate_runs_and_why():
    assert explained("AES-NI", "", ABLE, True) == "compiled, AES-NI (also here: VAES-256)"
    assert explained("ARM", "", ("ARM",), True) == "compiled, ARM"
    assert explained(None, "", (), False) == "numpy (this installation has no compiled gate)"
    assert "this processor has none" in explained(None, "", (), True)
    assert explained(None, "0", ABLE, True) == (
        "numpy (UMPC_NATIVE=0; also here: AES-NI, VAES-256)"
    )


def test_the_environment_turns_the_gate_off():
    program = "from umpc.native import garbled, status; print(garbled.CHOSEN, status())"
    environment = os.environ | {"UMPC_NATIVE": "0"}
    words = [sys.executable, "-c", program]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("None numpy (")


def test_protocols_use_the_gate_that_is_chosen():
    assert garbled.CHOSEN is CHOSEN


def test_version_says_which_gate_runs_in_either_order_of_its_options():
    for words in (["--version", "--verbose"], ["--verbose", "--version"]):
        ended = CliRunner().invoke(command, words)
        lines = ended.output.splitlines()
        assert ended.exit_code == 0 and lines[0].startswith("umpc, version ")
        assert f"compiled gate {status()}" in lines
        assert any(line.startswith("cryptography") and "OpenSSL" in line for line in lines)


def test_version_alone_is_one_line():
    ended = CliRunner().invoke(command, ["--version"])
    assert ended.exit_code == 0 and len(ended.output.splitlines()) == 1


def test_verbose_alone_is_refused():
    ended = CliRunner().invoke(command, ["--verbose", "kernels"])
    assert ended.exit_code == 2 and "--verbose needs --version" in ended.output


def test_calls_hold_no_lock(gate):
    """ctypes releases the interpreter's lock for a CDLL, not for a PyDLL."""
    assert library.LIBRARY is None or type(library.LIBRARY) is ctypes.CDLL


def test_the_library_answers_no_kind_that_has_no_name(gate):
    """A machine with a compiler has a library; it knows only the kinds of `KINDS`."""
    assert library.LIBRARY is not None or not shutil.which("cc")
    if library.LIBRARY is not None:
        assert library.LIBRARY.umpc_kinds() == sum(library.KINDS[kind] for kind in gate.kinds())


def test_a_library_of_another_version_is_not_used(gate, limit):
    if library.LIBRARY is None:
        return
    file = library.FILE
    assert library.load(file) is not None
    limit(library, VERSION=library.VERSION + 1)
    assert library.load(file) is None


def test_a_missing_or_damaged_library_is_not_used(tmp_path):
    damaged = tmp_path / "gate.so"
    damaged.write_bytes(b"not a library")
    assert library.load(damaged) is None and library.load(tmp_path / "missing.so") is None
