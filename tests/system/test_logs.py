"""Logs of real processes: every line has its facts, and a study that succeeds leaves no warning."""

from __future__ import annotations

import json
import os

from tests.system.test_onemessage import STUDY


def test_every_line_of_a_good_study_is_json_and_none_is_a_warning(lab):
    settings = {"UMPC_LOG_FORMAT": "json"}
    names = ("node-1", "node-2")
    here = lab(len(names), dict.fromkeys(names, settings)).start(dealer=False)
    for _ in range(2):  # the second run repeats what is stored
        outcome = here.run(**STUDY)
        assert outcome.code == 0, outcome.error
    for name in names:
        here.wait_for_log(name, "was released before")
    here.stop()
    for name in names:
        entries = [json.loads(line) for line in here.log(name).splitlines()]
        assert {entry["process"] for entry in entries} == {f"node {name}"}
        assert {entry["level"] for entry in entries} == {"INFO"}, entries
        (charged,) = (entry for entry in entries if "charged, the share" in entry["message"])
        assert charged["step"] == "release" and len(charged["study"]) == 16
        of_study = [entry for entry in entries if entry["study"] == charged["study"]]
        assert {entry["step"] for entry in of_study} == {"propose", "release"}
        assert sum("accepted" in entry["message"] for entry in of_study) == 1


def test_a_replay_says_at_the_site_that_the_table_was_written_since(lab):
    """The stored answer is of the former data, which only the site's administrator is told."""
    here = lab(2).start(dealer=False)
    assert here.run(**STUDY).code == 0
    table = here.table("node-1")
    later = table.stat().st_mtime + 3600
    os.utime(table, (later, later))
    again = here.run(**STUDY)
    assert again.code == 0 and again.report["replayed"]
    assert "the table was written since 20" in here.wait_for_log("node-1", "released before")
    assert "written since" not in here.wait_for_log("node-2", "released before")
    assert "written since" not in again.error + again.output
    table.unlink()
    assert here.run(**STUDY).code == 0, "a stored answer needs no table"
