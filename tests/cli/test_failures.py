"""The end of a command: a line for people, and with --format json an object for programs."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from umpc.cli import main as root
from umpc.cli.study import print_contacts
from umpc.coordinator.client import Contact
from umpc.errors import ApprovalPending, ConfigError, PeerUnavailable, PolicyRefused, StudyError
from umpc.testing import lying


def ended(monkeypatch, capsys, *arguments: str) -> tuple[int, str, list[str]]:
    """Run a command that fails. Returns: exit code, output, lines of standard error."""
    monkeypatch.setattr(sys, "argv", ["umpc", *arguments])
    # click shows another name below `python -m pytest`
    monkeypatch.setattr("__main__.__package__", None, raising=False)
    with pytest.raises(SystemExit) as caught:
        root.main()
    told = capsys.readouterr()
    return int(caught.value.code or 0), told.out, told.err.splitlines()


@pytest.mark.parametrize("form", [("--format", "json"), ("--format=json",)])
def test_a_failure_is_a_line_and_with_json_also_an_object(monkeypatch, capsys, tmp_path, form):
    file = str(tmp_path / "absent.toml")
    code, output, plain = ended(monkeypatch, capsys, "study", "run", file)
    assert (code, output, len(plain)) == (StudyError.exit_code, "", 1)
    code, output, lines = ended(monkeypatch, capsys, "study", "run", file, *form)
    assert (code, output, lines[0]) == (StudyError.exit_code, "", plain[0])
    assert json.loads(lines[1]) == {
        "error": "StudyError",
        "message": plain[0].removeprefix("error: "),
        "exit_code": code,
    }


FILES = ["study run", "study check", "study prepare", "train --model new.json"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        *((f"{each} FILE", StudyError.exit_code) for each in FILES),
        ("plan FILE --records 3,3", StudyError.exit_code),
        ("infer FILE", ConfigError.exit_code),
        ("demo --csv FILE --fields x,y", ConfigError.exit_code),
        ("budget show --config FILE", ConfigError.exit_code),
    ],
)
def test_a_named_file_that_is_absent_or_a_folder_has_one_line_with_advice(
    monkeypatch, capsys, tmp_path, command, code
):
    monkeypatch.chdir(tmp_path)
    found, _, lines = ended(monkeypatch, capsys, *command.replace("FILE", "absent").split())
    assert (found, len(lines)) == (code, 1) and "Errno" not in lines[0]
    assert lines[0].endswith("was expected, and there is no such file. Correct the path")
    (tmp_path / "folder").mkdir()
    found, _, lines = ended(monkeypatch, capsys, *command.replace("FILE", "folder").split())
    expected = "a file was expected, and folder is a folder. Name a file in it"
    assert found == 2 and lines[-1].endswith(expected)


def test_a_file_that_may_not_be_read_is_refused_where_it_is_read(monkeypatch, capsys, tmp_path):
    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    file = tmp_path / "report.json"
    file.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(Path, "read_text", refused)
    code, _, lines = ended(monkeypatch, capsys, "infer", str(file))
    assert code == ConfigError.exit_code and len(lines) == 1
    assert "this user may not read it. Check the owner and the mode" in lines[0]


def test_a_file_for_a_folder_is_refused_with_advice(monkeypatch, capsys, tmp_path):
    file = tmp_path / "ca.pem"
    file.touch()
    code, _, lines = ended(monkeypatch, capsys, "ca", "list", "--authority", str(file))
    assert code == 2 and f"a folder was expected, and {file} is a file" in lines[-1]


def test_the_last_line_begins_alike_for_a_wrong_option_and_after_ctrl_c(monkeypatch, capsys):
    code, _, lines = ended(monkeypatch, capsys, "study", "run")
    assert (code, lines[-1]) == (2, "error: Missing argument 'FILE'.")
    assert lines[0].startswith("Usage: umpc study run")

    def interrupt(honest, standalone_mode):
        raise KeyboardInterrupt

    with lying("process", umpc=interrupt):
        assert ended(monkeypatch, capsys) == (root.INTERRUPTED, "", ["error: interrupted"])


def test_a_wrong_option_is_an_object_too(monkeypatch, capsys):
    code, _, lines = ended(monkeypatch, capsys, "plan", "--format", "json", "--no-such")
    assert code == 2 and json.loads(lines[-1])["error"] == "NoSuchOption"


@pytest.mark.parametrize(
    ("answers", "raised"),
    [
        (["9.9.9", ApprovalPending("west waits")], ApprovalPending),
        ([ApprovalPending("west waits"), PeerUnavailable("south is away")], PeerUnavailable),
        ([PolicyRefused("west rejected it"), ApprovalPending("south waits")], PolicyRefused),
    ],
)
def test_a_site_that_has_yet_to_accept_is_the_reason_of_a_check_only_alone(answers, raised):
    """Then the exit code is 35, as that of the run."""
    contacts = [Contact("coordinator", f"site-{i}", each) for i, each in enumerate(answers)]
    with pytest.raises(raised):
        print_contacts(contacts[:1], contacts[1:])


def test_what_a_demo_runs_tells_its_person_only(monkeypatch, capsys, tmp_path):
    arguments = ("study", "run", str(tmp_path / "no"), "--format", "json", root.INSIDE_A_DEMO)
    _, _, lines = ended(monkeypatch, capsys, *arguments)
    assert len(lines) == 1 and lines[0].startswith("error: ")


SWALLOWED = """
import signal, sys, time, types, weakref
root = types.ModuleType("umpc.cli.main")
class Lock: pass
def main():
    lock = Lock()
    kept = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))
    del lock                  # the exception of this callback is ignored
    time.sleep(10)
    print("still here")
root.main = main
sys.modules["umpc.cli.main"] = root
from umpc.cli.entry import main
main()
"""
"""A command whose first Ctrl-C comes inside a callback, as those of Python's imports are."""

LATE = """
import atexit, os, signal, sys, types
root = types.ModuleType("umpc.cli.main")
root.main = lambda: atexit.register(signal.raise_signal, signal.SIGINT)
sys.modules["umpc.cli.main"] = root
from umpc.cli.entry import main
main()
"""
"""A command that has ended, and Ctrl-C comes while Python clears up."""


def test_a_ctrl_c_that_python_ignores_in_a_callback_comes_again():
    ended = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")


IN_A_CLASS = """
import sys, types
root = types.ModuleType("umpc.cli.main")
class Named:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt
def main():
    class Owner:
        named = Named()
root.main = main
sys.modules["umpc.cli.main"] = root
from umpc.cli.entry import main
main()
"""
"""A command whose Ctrl-C comes while an imported module makes a class."""


def test_a_ctrl_c_while_a_class_is_made_is_one_line():
    ended = subprocess.run([sys.executable, "-c", IN_A_CLASS], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")


def test_a_ctrl_c_after_the_end_of_a_command_prints_no_traceback():
    ended = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")
