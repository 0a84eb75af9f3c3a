"""`umpc overlap` without a network: the studies that it does not run."""

from __future__ import annotations

from click.testing import CliRunner

from tests.support.studyfiles import participants, planned_file
from umpc.cli.main import umpc
from umpc.errors import StudyError


def refused(*words: str) -> str:
    ended = CliRunner().invoke(umpc, ["overlap", *words])
    assert isinstance(ended.exception, StudyError), ended.output
    return ended.exception.message


def test_a_study_of_another_protocol_is_not_run(tmp_path):
    (dealer,) = participants("dealer")
    file = planned_file(tmp_path, ("north", "south"), edges="2n", dealer=dealer)
    told = refused(str(file))
    assert "has 'u-mpc'" in told and "`umpc study run`" in told


def test_what_only_a_new_study_takes_is_refused_without_sites(tmp_path):
    file = tmp_path / "overlap.toml"
    for given in (("--person", "id"), ("--epsilon", "0.5")):
        assert "--person and --epsilon go with --site" in refused(str(file), *given)
    assert "give --site twice" in refused(str(file), "--site=a=a:1", "--person", "id")
    assert not file.exists()
