"""umpc.node.template: a configuration to fill in, accepted as soon as its paths exist."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.support.node_files import load, refused
from umpc.errors import ConfigError
from umpc.node.policy import ANYTHING
from umpc.node.table.conversions import NumberFormat
from umpc.node.table.source import TableSource
from umpc.node.template import configured, template


def test_the_template_is_accepted_once_its_paths_exist(site):
    text = template("hospital-a")
    refused(site, text, "'data.path'")
    (site / "data.csv").write_text("age\n")
    refused(site, text, "'identity'")
    (site / "id").rename(site / "site")
    config = load(site, text)
    assert (config.name, config.dataset, config.epsilon) == ("hospital-a", "data", Fraction(5))


def test_what_the_template_comments_out_is_accepted_too(site):
    (site / "data.csv").write_text("age\n")
    (site / "id").rename(site / "site")
    # a node behind a hub does not listen
    lines = [line for line in template("b").splitlines() if not line.startswith("listen")]
    config = load(
        site, "\n".join(line.removeprefix("# ") if " = " in line else line for line in lines)
    )
    assert config.hub is not None
    numbers = NumberFormat(",", ".")
    source = TableSource(site / "data.csv", ";", ("", "NA"), "latin-1", numbers)
    words, columns = {"WAHR": "true", "<5": "2.5"}, {"crp": "CRP_mg_l"}
    assert config.source == replace(source, words=words, columns=columns)
    assert config.ledger == site / "b-ledger.sqlite"
    assert [
        name for name, rule in vars(config.policy).items() if rule == getattr(ANYTHING, name)
    ] == []


def test_a_new_node_asks_a_person_unless_it_is_open(site):
    (site / "data.csv").write_text("age\n")
    (site / "id").rename(site / "site")
    values = {"table": "data.csv", "epsilon": "1/3", "place": "127.0.0.1:0"}
    for is_open in (False, True):
        config = load(site, configured("a", **values, is_open=is_open))
        assert config.policy.approval is not is_open
    assert load(site, template("a")).policy.approval


def test_a_template_for_a_name_that_no_node_may_have():
    with pytest.raises(ConfigError, match="a-z"):
        template('a"b')
