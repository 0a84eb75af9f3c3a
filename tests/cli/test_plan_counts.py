"""`umpc plan` of a table of counts says before money is spent what a run could not tell."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.support.counts import EVENT, GROUP, TIME
from tests.support.studyfiles import planned_file
from umpc.cli.main import umpc
from umpc.errors import StudyError

USUAL = {"columns": ["time", "event"], "fields": [TIME, EVENT], "epsilon": "5"}


def plan(folder, *options: str, **changes):
    path = planned_file(folder, ("north", "south", "west"), **(USUAL | changes))
    return CliRunner().invoke(umpc, ["plan", str(path), "--records", "9,9,12", *options])


def table(folder, event: str) -> str:
    path = folder / "like.csv"
    rows = "".join(f"{number % 20},{event}\n" for number in range(30))
    path.write_text(f"time,event\n{rows}", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("statistic", "event", "said"),
    [
        ("kaplan_meier", "no", "have no median, because the curve stays above 1/2"),
        ("roc", "no", "have no area under the curve, because a group of them is empty"),
        ("roc", "yes", "have no area under the curve"),
    ],
)
def test_records_without_events_or_of_one_class_are_told(tmp_path, statistic, event, said):
    ended = plan(tmp_path, "--like", table(tmp_path, event), statistic=statistic)
    assert ended.exit_code == 0 and said in ended.output


THREE = {"columns": ["time", "event", "group"], "fields": [TIME, EVENT, GROUP]}


@pytest.mark.parametrize("statistic", ["logrank", "gehan", "qq", "kaplan_meier", "nelson_aalen"])
def test_groups_without_an_event_or_with_one_class_are_told(tmp_path, statistic):
    path, two = tmp_path / "like.csv", statistic == "qq"
    rows = (f"{number % 20},no,{'abc'[number % 3]}\n" for number in range(300))
    path.write_text("time,event,group\n" + "".join(rows), encoding="utf-8")
    own = {} if two else THREE
    ended = plan(tmp_path, "--like", str(path), statistic=statistic, **own)
    said = "have no median, group a, because" if statistic == "kaplan_meier" else "one value of 'ev"
    assert ended.exit_code == 0 and said in ended.output
    path.write_text(path.read_text("utf-8").replace("no,a", "yes,a"), encoding="utf-8")
    if statistic != "kaplan_meier":
        assert (
            "one value of"
            not in plan(tmp_path, "--like", str(path), statistic=statistic, **own).output
        )


def test_records_that_are_all_events_have_a_median(tmp_path):
    ended = plan(tmp_path, "--like", table(tmp_path, "yes"), statistic="kaplan_meier")
    assert ended.exit_code == 0 and "errors are not known" not in ended.output
    assert "many counts: 40, more than there are records" in ended.output


def test_cut_points_outside_the_bounds_are_refused(tmp_path):
    ended = plan(tmp_path, statistic="kaplan_meier", bins={"time": [25]})
    assert isinstance(ended.exception, StudyError)
    assert "above the upper bound" in ended.exception.message
