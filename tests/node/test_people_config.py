"""[people] and [data] people: a node that is an aggregator has no table, and one door."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.node_files import BUDGET, HEAD, load, refused

DATA = '[data]\npeople = "from-people"\n'
DOOR = '[people]\nlisten = "0.0.0.0:7444"\n'


def test_an_aggregator_has_a_folder_and_a_door(site):
    config = load(site, HEAD + DATA + DOOR + BUDGET)
    place = config.people
    assert place.folder == site / "from-people"
    assert (place.listen, place.cap, place.most) == ("0.0.0.0:7444", None, 0)
    assert config.dataset == "from-people"
    more = 'cap = "7/2"\nmost_per_second = 50\n'
    place = load(site, HEAD + DATA + DOOR + more + BUDGET).people
    assert (place.cap, place.most) == (Fraction(7, 2), 50)


def test_a_table_has_neither(site):
    assert load(site, HEAD + '[data]\npath = "bank.csv"\n' + BUDGET).people is None


@pytest.mark.parametrize(
    "key", ['path = "bank.csv"', 'delimiter = ";"', 'sql = "t"', 'url = "s3://a/b"', "words = {}"]
)
def test_people_and_a_table_exclude_each_other(site, key):
    refused(site, HEAD + DATA + key + "\n" + DOOR + BUDGET, f"data.{key.split()[0]}", "people")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (DATA, ("[people]",)),
        (DATA + '[people]\nlisten = "7443"\n', ("people.listen", "host:port")),
        (DATA + "[people]\nport = 7443\n", ("people.port", "listen")),
        (DATA + DOOR + "cap = 0\n", ("people.cap", "above 0")),
        (DATA + DOOR + "most_per_second = -1\n", ("people.most_per_second",)),
        ('[data]\npath = "bank.csv"\n' + DOOR, ("'people'", "0 of 1 have")),
        ("[data]\npeople = 5\n" + DOOR, ("data.people", "path of a folder")),
    ],
)
def test_each_mistake_is_named(site, text, parts):
    refused(site, HEAD + text + BUDGET, *parts)


def test_a_node_has_one_door(site):
    datasets = "".join(
        f'[[datasets]]\nname = "{name}"\npeople = "{name}"\nledger = "{name}.sqlite"\n'
        "[datasets.budget]\nepsilon = 5\n"
        for name in ("one", "two")
    )
    refused(site, HEAD + datasets + DOOR, "'people'", "2 of 2 have")


def test_an_aggregator_is_a_node_of_its_own(site):
    """A study of people names no data set, so a node with others would not know whose it is."""
    datasets = (
        '[[datasets]]\nname = "table"\npath = "bank.csv"\nledger = "table.sqlite"\n'
        "[datasets.budget]\nepsilon = 5\n"
        '[[datasets]]\nname = "crowd"\npeople = "crowd"\nledger = "crowd.sqlite"\n'
        "[datasets.budget]\nepsilon = 5\n"
    )
    refused(site, HEAD + datasets + DOOR, "'people'", "1 of 2 have", "a node of their own")


# --- linked rows, whose site has a table

LINKED = '[linked]\nfolder = "rows"\nkey = "pseudonym"\n'
TABLE = '[data]\npath = "bank.csv"\n'


def test_a_site_of_linked_rows_has_a_table_a_folder_and_a_column_of_keys(site):
    config = load(site, HEAD + TABLE + LINKED + BUDGET)
    assert (config.linked.folder, config.linked.key) == (site / "rows", "pseudonym")
    assert config.people is None and config.source.path == site / "bank.csv"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (TABLE + '[linked]\nfolder = "rows"\n', ("linked.key", "a column's name")),
        (TABLE + '[linked]\nkey = "pseudonym"\n', ("linked.folder", "path of a folder")),
        (TABLE + LINKED + "port = 1\n", ("linked.port",)),
        (DATA + DOOR + LINKED, ("'linked'", "1 without one")),
    ],
)
def test_each_mistake_about_linked_rows_is_named(site, text, parts):
    refused(site, HEAD + text + BUDGET, *parts)
