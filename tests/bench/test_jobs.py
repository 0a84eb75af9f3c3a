"""`make bench`: a job that fails loses its own figures only, and the summary says why it failed."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import pytest

from bench import __main__ as command
from bench import jobs, nodes
from bench.harness import Site
from bench.jobs import JobFailed, figures_of, reason_of, run_parts
from bench.table import Figure
from umpc.errors import PeerUnavailable
from umpc.testing import lying

GOOD = Figure("good work", "1 ms", "under 2 ms", True)
MISSED = Figure("slow work", "3 ms", "under 2 ms", False)


def fails() -> list[Figure]:
    raise JobFailed("`umpc study run`, exit code 4: node-31 went away")


PARTS = {"good": lambda: [GOOD], "bad": fails, "slow": lambda: [MISSED], "silent": lambda: None}


def test_the_summary_has_every_other_figure_and_says_which_job_failed_and_why(capsys):
    assert run_parts(("good", "bad", "slow"), PARTS) == 1
    summary = capsys.readouterr().out
    for text in ("good work", "1 ms", "met", "slow work", "missed", "failed"):
        assert text in summary
    last = summary.splitlines()[-1]
    assert last == "failed: bad: `umpc study run`, exit code 4: node-31 went away"


def test_without_a_failure_the_exit_code_is_0_even_where_a_target_is_missed(capsys):
    assert run_parts(("good", "slow", "silent"), PARTS) == 0
    assert "failed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (JobFailed("exit code 3"), "exit code 3"),
        (JobFailed(""), "it gave no reason"),
        (ZeroDivisionError("division by zero\nand more"), "ZeroDivisionError: division by zero"),
        (PeerUnavailable("node-3 did not start", culprit="node-3"), "PeerUnavailable: node-3"),
        (SystemExit("no file"), "SystemExit: no file"),
        (KeyError(), "KeyError"),
    ],
)
def test_a_reason_is_one_line(error, reason):
    said = reason_of(error)
    assert said.startswith(reason) and "\n" not in said


def test_an_interrupt_is_no_failure_of_a_job():
    def interrupted() -> list[Figure]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        figures_of("job", interrupted)


def test_an_unknown_part_is_refused_before_any_job_runs(capsys):
    with pytest.raises(SystemExit) as refused:
        command.main(["coins", "elsewhere"])
    assert refused.value.code == 2
    assert "there is no benchmark elsewhere; there are targets" in capsys.readouterr().err


def test_every_part_can_be_loaded_and_has_a_job():
    for name in command.PARTS:
        module = __import__(f"bench.{name}", fromlist=["main"])
        assert callable(module.main), name


def test_parts_without_a_name_are_those_with_targets(monkeypatch, capsys):
    monkeypatch.setattr(command, "part", lambda name: lambda: [GOOD._replace(work=name)])
    assert command.main([]) == 0
    printed = capsys.readouterr().out
    assert "targets" in printed and "oblivious" not in printed


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "import sys; sys.exit('step 2\\nerror: node-31 went away')",
            "exit code 1: node-31 went away",
        ),
        ("raise SystemExit(7)", "exit code 7: it said nothing"),
    ],
)
def test_a_study_that_ends_badly_is_a_failed_job(tmp_path, script, reason):
    """The coordinator is a real process, which only fails."""
    failing = lying("process", command=lambda _: (sys.executable, "-c", script))
    with failing, pytest.raises(JobFailed, match=reason):
        Site(tmp_path, {}, [], []).study()


def test_a_site_that_does_not_start_is_a_failed_job(monkeypatch, capsys):
    @contextmanager
    def site(*arguments, **keywords):
        raise PeerUnavailable("node-31 did not start: no memory", culprit="node-31")
        yield

    monkeypatch.setattr(nodes, "site", site)
    assert jobs.run_parts(("nodes",), {"nodes": nodes.main}) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "failed: nodes: PeerUnavailable: node-31 did not start: no memory"
