"""Columns at different sites from end to end, over real processes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.tables import AT_HAND
from tests.system.linked_lab import NAMES, Linked
from umpc.errors import ApprovalPending, PolicyRefused, StudyError, TransportError
from umpc.study.settings import HONEST, LYING_NODES


def columns(path: Path) -> dict[str, np.ndarray]:
    """Age and balance of a table."""
    with path.open() as file:
        rows = [*csv.DictReader(file, delimiter=";")]
    return {name: np.array([int(row[name]) for row in rows]) for name in ("age", "balance")}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Callable[..., Linked]]:
    """Provide lab(values), whose processes are stopped after the test."""
    made: list[Linked] = []

    def make(values: dict[str, np.ndarray]) -> Linked:
        made.append(Linked(tmp_path, values))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.mark.parametrize("grade", [HONEST, LYING_NODES])
@pytest.mark.parametrize("table", AT_HAND, ids=lambda table: table.name)
def test_age_at_one_site_and_balance_at_the_other_are_the_clear_tau(lab, tmp_path, table, grade):
    linked = lab(columns(table.place(tmp_path).path)).start()
    path = linked.study(adversary=grade)
    report = linked.run(path)
    assert report.records == linked.rows
    assert report.estimate == pytest.approx(linked.tau, abs=1e-6)
    assert report.bytes_online == report.bytes_online_predicted
    assert linked.run(path).estimate == report.estimate
    for name in NAMES:
        assert linked.spent(name) == 1
        assert not any(linked.shares(name)), "the release has left"
        assert not any((linked.folder / f"{name}-linked").glob("*.o*"))


# --- what goes wrong


def sixty_rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(60)
    age, balance = rng.integers(18, 90, 60), rng.integers(-3000, 9000, 60)
    return {"age": age, "balance": balance + 40 * age}


@pytest.fixture
def made(lab) -> Linked:
    """Provide 60 rows, at sites that run."""
    return lab(sixty_rows()).start()


def test_a_list_that_was_made_leaves_no_more_once_the_approval_is_withdrawn(lab):
    made = lab(sixty_rows()).start("[policy]\napproval = true\n")
    with pytest.raises(ApprovalPending):
        made.open(made.study())
    made.decide(made.study(), "accept")
    made.restart("east", "linked-listed:kill")
    opened = made.open(made.study())
    with pytest.raises(TransportError):
        made.listed(made.study(), 1, opened)
    assert made.events("east").count("listed") == 0
    made.restart("east")
    assert made.listed(made.study(), 1, opened)
    assert made.events("east").count("listed") == 1
    made.decide(made.study(), "reject", "--reason", "no")
    with pytest.raises(PolicyRefused):
        made.listed(made.study(), 1, opened)
    assert made.events("east").count("listed") == 1


def test_a_study_that_ends_well_refuses_nothing(made):
    made.restart("east", "people-part-added:kill")
    with pytest.raises(TransportError):
        made.run(made.study())
    made.restart("east")
    made.run(made.study())
    made.run(made.study())
    for name in NAMES:
        assert "refusal" not in made.events(name) and "listed" in made.events(name)


def test_a_site_without_a_row_is_refused_before_anything_is_signed(made):
    table = made.table("east")
    table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(StudyError, match=r"east has 59 complete rows.* links 60"):
        made.run(made.study())
    assert made.spent("west") == made.spent("east") == 0


def test_sites_with_other_keys_are_refused(made):
    table = made.table("east")
    first, *rest = table.read_text().splitlines()
    table.write_text("\n".join([first, *rest[:-1], f"another,{rest[-1].split(',')[1]}"]) + "\n")
    with pytest.raises(StudyError, match="are not those of this site, though there are as many"):
        made.run(made.study())


def test_a_key_that_is_there_twice_is_one_row(made):
    table = made.table("west")
    table.write_text(f"{table.read_text()}{table.read_text().splitlines()[-1]}\n")
    report = made.run(made.study())
    assert report.records == 60 and report.estimate == pytest.approx(made.tau, abs=1e-6)


@pytest.mark.parametrize(
    "failpoint",
    ["linked-listed", "people-signed", "people-part-added", "people-added", "after-charge"],
)
def test_a_site_that_dies_goes_on_with_the_list_that_it_made(made, failpoint):
    path = made.study()
    made.restart("east", f"{failpoint}:kill")
    path = made.study()
    with pytest.raises(TransportError):
        made.run(path)
    made.restart("east")
    # the table has changed: the numbers of another list, beside the first one, would show how
    table = made.table("east")
    head, *rest = table.read_text().splitlines()
    table.write_text("\n".join([head, *(f"{row.split(',')[0]},0" for row in rest)]) + "\n")
    path = made.study()
    report = made.run(path)
    assert report.estimate == pytest.approx(made.tau, abs=1e-6)
    assert made.spent("west") == made.spent("east") == 1
