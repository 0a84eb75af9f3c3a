"""`umpc study run --wait`: it asks again, says who has decided, and ends in time."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.support.studies import make_study, with_facts
from umpc.cli import study as wait
from umpc.cli.main import umpc
from umpc.cli.study import run_when_accepted
from umpc.errors import ApprovalPending, PolicyRefused
from umpc.study.parts import Participant

STUDY = with_facts(make_study(), nodes=tuple(Participant(name, "") for name in ("north", "south")))
HASH = STUDY.hash.hex()[:16]


class Answers:
    """A study whose runs end as they are listed, and a clock that moves by its pauses."""

    def __init__(self, *answers: object):
        self.document = STUDY
        self.answers = list(answers)
        self.time = 0.0
        self.pauses: list[float] = []

    def run(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.pauses.append(seconds)

    def wait(self, hours: float = 1):
        return run_when_accepted(self, self.run, hours, self.sleep, lambda: self.time)


def pending(*names: str) -> ApprovalPending:
    error = ApprovalPending("it waits", culprit=names[0])
    error.waiting = names if len(names) > 1 else ()
    return error


def test_it_says_who_has_yet_to_decide_and_runs_then(capsys):
    study = Answers(pending("north", "south"), pending("north", "south"), pending("south"), "done")
    assert study.wait() == "done"
    assert study.pauses == [15, 22.5, 33.75]
    assert capsys.readouterr().err.splitlines() == [
        "waiting for approval by north, south; ready: nobody yet; the study's hash is " + HASH,
        "waiting for approval by south; ready: north; the study's hash is " + HASH,
    ]


def test_it_ends_with_a_rejection_and_when_the_time_is_up():
    study = Answers(pending("north"), PolicyRefused("south rejected it"))
    with pytest.raises(PolicyRefused):
        study.wait()
    study = Answers(*(pending("north") for _ in range(99)))
    with pytest.raises(ApprovalPending):
        study.wait(hours=1)
    assert study.time <= wait.HOUR < study.time + 2 * wait.LONGEST_PAUSE
    assert max(study.pauses) <= wait.LONGEST_PAUSE


def test_the_option_has_hours_and_a_default(tmp_path):
    file = str(tmp_path / "no.toml")
    for arguments in (["--wait", file], [file, "--wait"], ["--wait", "--hours", "0.5", file]):
        ended = CliRunner().invoke(umpc, ["study", "run", *arguments])
        assert "no.toml" in str(ended.exception)
    ended = CliRunner().invoke(umpc, ["study", "run", "x.toml", "--wait", "--hours", "-1"])
    assert ended.exit_code == 2
