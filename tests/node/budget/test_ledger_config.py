"""umpc.node.config, section [budget]: delta exactly, and where the anchor is."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from umpc.dp.composition import ADVANCED, ZCDP, Composition
from umpc.errors import ConfigError
from umpc.node.config import NodeConfig, changed_keys, key_digests, load_node_config
from umpc.node.config_section import IDENTITY_FILES
from umpc.node.template import template


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    for name in IDENTITY_FILES:
        (tmp_path / "site" / name).write_text("pem")
    (tmp_path / "data.csv").write_text("age\n30\n")
    return tmp_path


def load(site: Path, lines: str) -> NodeConfig:
    text = template("a")
    assert text.count("\nepsilon = 5 ") == 1
    (site / "node.toml").write_text(text.replace("\nepsilon = 5 ", f"\n{lines}\nepsilon = 5 "))
    return load_node_config(site / "node.toml")


def test_defaults(site):
    config = load(site, "")
    assert config.delta == Fraction(1, 10**9) and config.anchor is None


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"1e-9"', "1/1000000000"),
        ('"2.5E-12"', "1/400000000000"),
        ("1e-6", "1/1000000"),
        ("0.000001", "1/1000000"),
        ('"0.1"', "1/10"),
        ('"1/3"', "1/3"),
        ("0", "0"),
        ('"1e-30"', Fraction(1, 10**30)),
    ],
)
def test_delta_is_exact(site, written, value):
    assert load(site, f"delta = {written}").delta == Fraction(value)


@pytest.mark.parametrize(
    "written",
    [
        "1",
        "-1",
        '"-1e-9"',
        "true",
        "nan",
        '"1/0"',
        '"1e-31"',
        '"1e-999"',
        '"e-9"',
        '" 0"',
        '""',
        "[0]",
        '"1e9"',
        "1e-400",
    ],
)
def test_delta_refused(site, written):
    with pytest.raises(
        ConfigError, match=r"key 'budget\.delta': a number from 0 to below 1 .* came"
    ):
        load(site, f"delta = {written}")


def test_the_anchor_s_place(site):
    (site / "other disk").mkdir()
    assert load(site, 'anchor = "other disk/anchor"').anchor == site / "other disk" / "anchor"
    for wrong in ("absent/anchor", "other disk"):
        with pytest.raises(
            ConfigError, match=r"key 'budget\.anchor': a file in an existing folder"
        ):
            load(site, f'anchor = "{wrong}"')


def test_the_composition_and_its_delta(site):
    assert load(site, "").composition == Composition()
    for name in (ADVANCED, ZCDP):
        lines = f'composition = "{name}"\ncomposition_delta = "1e-7"'
        assert load(site, lines).composition == Composition(name, Fraction(1, 10**7))
    before = key_digests(load(site, lines).file)
    changed = changed_keys(before, load(site, "").file)
    assert changed == ["budget.composition", "budget.composition_delta"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('composition = "tight"', "one of 'basic', 'advanced', 'zcdp' was expected"),
        ("composition = 3", "one of 'basic', 'advanced', 'zcdp' was expected"),
        ('composition = "zcdp"', "'budget.composition_delta' is missing or 0"),
        ('composition = "zcdp"\ncomposition_delta = 0', "is missing or 0"),
        ('composition = "zcdp"\ncomposition_delta = 2', "a number from 0 to below 1"),
        ('composition_delta = "1e-9"', 'goes with composition = "advanced" or "zcdp"'),
    ],
)
def test_a_composition_that_is_refused(site, lines, message):
    with pytest.raises(ConfigError, match=message):
        load(site, lines)
