"""How many people two sites share, over real processes."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest

from tests.system.conftest import Lab, command
from umpc.errors import InsufficientBudget, PeerLost
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

STUDY = {
    "protocol": "overlap",
    "statistic": None,
    "columns": None,
    "fields": (),
    "person": "id",
}
POLICY = '[policy]\nperson = "id"\n'
LOUD = "1e9"


def write_tables(lab: Lab, first=range(300), second=range(270, 700)) -> None:
    """Sites of 300 and 430 people who share 30; two have two rows each, and one row has nobody."""
    for name, people in zip(lab.names, (first, second), strict=True):
        who = [*(f"p{each}" for each in (*people, people[0], people[-1])), ""]
        lab.table(name).write_text("id,age\n" + "".join(f"{each},1\n" for each in who))


def spent(lab: Lab) -> list[int]:
    """The epsilon that each site has charged, in all."""
    places = (Place.of(lab.folder / f"{name}-ledger.sqlite") for name in lab.names)
    return [int(read_beside(place).account.epsilon().spent) for place in places]


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Iterator[Lab]:
    """Provide two sites with people, and no dealer."""
    here = Lab(tmp_path_factory.mktemp("two"), 2)
    try:
        here.start("1" + "0" * 10, POLICY, dealer=False)
        write_tables(here)
        yield here
    finally:
        here.stop()


def test_it_is_exact_without_noise_and_costs_what_was_predicted(two):
    outcome = two.run(name="loud", epsilon=LOUD, **STUDY)
    assert outcome.code == 0, outcome.error
    report = outcome.report
    assert report["estimate"] == 30 and report["records_by_node"] == [300, 430]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["rounds"] == report["rounds_predicted"] == 2
    assert two.loud_lines() == []


def test_a_second_answer_is_the_first_one_and_costs_nothing(two):
    first = two.run(name="twice", epsilon="1", **STUDY).report
    before = spent(two)
    again = two.run(name="twice", epsilon="1", **STUDY).report
    assert again["replayed"] and again["estimate"] == first["estimate"]
    assert spent(two) == before


def test_the_command_writes_runs_and_repeats_the_study(two):
    file = two.folder / "overlap.toml"
    sites = [f"--site={name}={two.served[name].address}" for name in two.names]
    asked = (*sites, "--person", "id", "--epsilon", LOUD)
    first = command("overlap", str(file), *asked)
    assert first.returncode == 0, first.stderr
    assert "node-1 and node-2 share 30 people; 95 % interval 30 to 30" in first.stdout
    assert "the promise to such a person is 2E" in first.stdout
    assert "--shared 30" in first.stdout
    before = spent(two)
    again = command("overlap", str(file))
    assert "share 30 people" in again.stdout and spent(two) == before
    refused = command("overlap", str(file), *asked)
    assert "exists already" in refused.stderr


def test_the_command_tells_no_more_people_than_a_site_has(two):
    """Both have the same ten, and an interval with noise is wider."""
    sites = [f"--site={name}={two.served[name].address}" for name in two.names]
    write_tables(two, range(10), range(10))
    asked = ("overlap", str(two.folder / "few.toml"))
    done = command(*asked, *sites, "--person", "id", "--epsilon", "0.05")
    again = command(*asked)
    write_tables(two)
    for each in (done, again):
        assert each.returncode == 0, each.stderr
        shared, low, high, told = map(int, re.search(LINES, each.stdout, re.DOTALL).groups())
        assert 0 <= low <= shared == told <= high <= 10


LINES = r"share (-?\d+) people; 95 % interval (-?\d+) to (-?\d+)\n.*--shared (-?\d+)"


@pytest.mark.parametrize("point", ["after-fields", "before-charge", "after-charge"])
def test_a_site_that_is_killed_charges_once(lab, point):
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": f"{point}:kill"}})
    here.start("2", POLICY, dealer=False)
    write_tables(here)
    assert here.run(name="killed", epsilon="1", **STUDY).code == PeerLost.exit_code
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL
    here.disarm()
    here.deployment.start_node("node-2", here.table("node-2"), "2", more=POLICY)
    here.served.update(here.deployment.wait_until_ready())
    again = here.run(name="killed", epsilon="1", **STUDY)
    assert again.code == 0, again.error
    assert spent(here) == [1, 1]
    # another number is another study, and the ledger bounds how many there are
    assert here.run(name="second", epsilon="1", **STUDY).code == 0
    assert here.run(name="third", epsilon="1", **STUDY).code == InsufficientBudget.exit_code
    assert spent(here) == [2, 2]
