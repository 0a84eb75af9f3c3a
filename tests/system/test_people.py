"""Studies of people from end to end, over real processes: nothing is lost, and n counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.system.survey import NAMES, Survey, tau


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[Callable[..., Survey]]:
    """Provide survey(places, …), whose processes are stopped after the test."""
    made: list[Survey] = []

    def make(places: int = 20, **terms: object) -> Survey:
        made.append(Survey(tmp_path, places, **terms))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.mark.parametrize("hub", [False, True])
def test_people_are_counted_once_and_each_finds_its_receipt(survey, hub):
    lab = survey(20).start(hub=hub)
    study = lab.study()
    lab.open(study)
    lab.fetch(study, lab.people)
    assert lab.send(study, lab.people) == []
    counted, rows = lab.count(study)
    lab.check_receipts(study, lab.people, rows)
    report = lab.run(counted)
    assert report.records == len(lab.people)
    assert report.estimate == pytest.approx(tau(lab.people), abs=1e-6)
    # again: nothing is charged, and nobody needs the shares, which are gone
    again, same = lab.count(study)
    assert (again, same) == (counted, rows)
    assert lab.run(counted).estimate == report.estimate
    for name in NAMES:
        assert lab.spent(name) == 1
        assert {"opened", "counted", "charge", "release"} <= set(lab.events(name))
