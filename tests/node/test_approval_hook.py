"""A site's own command when a study begins to wait: once for a study, and never a shell."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec
import pytest

from tests.support.node_files import load, refused
from umpc.errors import ApprovalPending
from umpc.node.approvals import LEAST_SECONDS, ApprovalHook, Approvals


def study(name: str):
    from tests.cli.test_approve import TAU

    return msgspec.structs.replace(TAU, name=name)


class Calls:
    """The calls that a hook makes of its command."""

    def __init__(self, *, code: int = 0, error: Exception | None = None):
        self.code, self.error = code, error
        self.got: list[dict] = []
        self.time = 0.0

    def run(self, command, **options):
        assert command == ["/bin/tell", "me"] and "shell" not in options
        if self.error:
            raise self.error
        self.got.append(json.loads(options["input"]))
        return subprocess.CompletedProcess(command, self.code)

    def hook(self, command=("/bin/tell", "me")) -> ApprovalHook:
        return ApprovalHook(
            command,
            "north",
            start=lambda job: job(),
            run=self.run,
            now=lambda: self.time,
            describe=lambda study: f"about {study.name!r}",
        )


def ask(approvals: Approvals, name: str) -> None:
    with pytest.raises(ApprovalPending):
        approvals.require(study(name), "north")


def test_a_study_that_begins_to_wait_is_told_once(tmp_path):
    calls = Calls()
    approvals = Approvals(tmp_path / "a", tell=calls.hook().tell)
    ask(approvals, "$(rm -rf /)")
    calls.time = 2 * LEAST_SECONDS
    ask(approvals, "$(rm -rf /)")  # asked again, and told before
    (told,) = calls.got
    assert told["hash"] == approvals.entries()[0].hash
    assert (told["node"], told["name"], told["epsilon"]) == ("north", "$(rm -rf /)", "0.3")
    assert told["fields"] == ["x", "y"] and told["others"] == 0
    assert told["sentence"] == "about '$(rm -rf /)'"


def test_many_proposals_make_one_call_a_minute(tmp_path):
    calls = Calls()
    approvals = Approvals(tmp_path / "a", tell=calls.hook().tell)
    for number in range(5):
        ask(approvals, f"tau {number}")
    calls.time = LEAST_SECONDS
    ask(approvals, "later")
    assert [(told["name"], told["others"]) for told in calls.got] == [("tau 0", 0), ("later", 4)]


def test_without_a_command_nobody_is_told_and_a_failure_is_a_warning(tmp_path, caplog):
    calls = Calls()
    ask(Approvals(tmp_path / "a", tell=calls.hook(()).tell), "tau")
    assert calls.got == []
    failing = Calls(code=3), Calls(error=OSError("secret path"))
    for number, each in enumerate(failing):
        ask(Approvals(tmp_path / f"b{number}", tell=each.hook().tell), "tau")
    assert "ended with code 3" in caplog.text and "did not run: OSError" in caplog.text
    assert "secret" not in caplog.text


def test_a_real_program_gets_the_study_on_its_standard_input(tmp_path):
    file = tmp_path / "told"
    program = f"import sys; open({str(file)!r}, 'w').write(sys.stdin.read())"
    jobs = []
    hook = ApprovalHook([sys.executable, "-c", program], "north", start=jobs.append)
    hook.tell(study("tau"), "ab" * 32)
    jobs.pop()()
    assert json.loads(file.read_text())["hash"] == "ab" * 32


def test_the_command_is_a_program_with_its_full_path(site):
    (site / "table.csv").write_text("age\n")
    text = 'name = "north"\nidentity = "id"\n[data]\npath = "table.csv"\n[budget]\nepsilon = 5\n'
    assert load(site, text).hook == ()
    assert load(site, f'{text}[notify]\ncommand = ["/bin/sh", "-c"]\n').hook == ("/bin/sh", "-c")
    for wrong in ('["sh"]', '["/bin/no-such-program"]', "[1]", '"/bin/sh"', '["/etc/passwd"]'):
        refused(site, f"{text}[notify]\ncommand = {wrong}\n", "'notify.command'")
