"""`umpc plan` of people with one value each: n is one number."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.support.studies import Entropy
from tests.support.studyfiles import participants, planned_file
from umpc.cli.main import umpc
from umpc.people.places import new_tokens, write_keys

PEOPLE = {
    "keys": "people.keys",
    "opens": "2026-12-01T08:00:00Z",
    "closes": "2026-12-08T08:00:00Z",
}


@pytest.fixture
def file(tmp_path):
    write_keys(tmp_path / "people.keys", [key for _, key in new_tokens(4, Entropy("keys"))])
    (dealer,) = participants("dealer")
    facts = {"protocol": "people", "people": PEOPLE, "dealer": dealer, "nodes": None}
    bins = {"bins": {"balance": 10}}
    return planned_file(tmp_path, (), **facts, **bins, aggregators=participants("one", "two"))


def run(*words: object):
    ended = CliRunner().invoke(umpc, [str(word) for word in words])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_a_plan_takes_the_number_of_people_and_their_noise_is_that_of_n(file):
    values = json.loads(run("plan", file, "--records", "400", "--format", "json"))
    # ε = 1, Δf = 2 in n − 1 of n(n − 1)/2 pairs: √2·√2·2·2/n
    assert values["noise_std"] == pytest.approx(8 / 400, rel=0.01)


@pytest.mark.parametrize("records", ["400,400", "many"])
def test_a_plan_of_other_numbers_is_refused_with_how_to_write_it(file, records):
    ended = CliRunner().invoke(umpc, ["plan", str(file), "--records", records])
    assert ended.exception.message == (
        f"--records takes one number of people, and {records!r} came. Write it as 300"
    )


def test_other_protocols_have_tables_at_sites_and_are_no_alternative(file):
    options = ("--records", "400", "--protocols", "--format", "json")
    values = json.loads(CliRunner().invoke(umpc, ["plan", str(file), *options]).stdout)
    assert values["protocols"] == [] and values["recommended"] is None
