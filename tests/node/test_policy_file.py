"""umpc.node.policy: the rules as an administrator writes them."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from umpc.errors import ConfigError
from umpc.node.config import load_node_config
from umpc.node.config_section import IDENTITY_FILES
from umpc.node.policy import ANYTHING, Policy


def load(folder: Path, text: str) -> Policy:
    for name in (*IDENTITY_FILES, "t.csv"):
        (folder / name).write_text("text")
    top = 'name = "north"\nidentity = "."\n[data]\npath = "t.csv"\n[budget]\nepsilon = 5\n'
    (folder / "node.toml").write_text(top + text, encoding="utf-8")
    return load_node_config(folder / "node.toml").policy


def refused(folder: Path, text: str, *parts: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    assert [part for part in parts if part not in caught.value.message] == [], caught.value.message


HASH = "0123456789abcdef" * 4
POLICY = f"""
[policy]
coordinators = ["alice", "carol-2"]
statistics = ["kendall_tau", "mean"]
kernels = ["{HASH}"]
fields = ["age", "mean radius"]
public_labels = ["treatment"]
public_filters = ["age"]
person = "patient"
max_epsilon = 0.1
max_delta = "1e-9"
min_records = 100
min_nodes = 3
min_colluding = 2
noise = ["in_mpc"]
coins = ["transfers", "none"]
backend = ["shared", "garbled"]
preprocessing = ["none"]
dealers = ["dealer"]
shufflers = ["shuffler-1", "shuffler-2"]
trusted_curator = true
approval = true
"""


def test_every_rule(tmp_path):
    assert load(tmp_path, POLICY) == Policy(
        coordinators=frozenset({"alice", "carol-2"}),
        statistics=frozenset({"kendall_tau", "mean"}),
        kernels=frozenset({HASH}),
        fields=frozenset({"age", "mean radius"}),
        public_labels=frozenset({"treatment"}),
        public_filters=frozenset({"age"}),
        person="patient",
        max_epsilon=Fraction(1, 10),
        max_delta=Fraction(1, 10**9),
        min_records=100,
        min_nodes=3,
        min_colluding=2,
        noise=frozenset({"in_mpc"}),
        coins=frozenset({"transfers", "none"}),
        backend=frozenset({"shared", "garbled"}),
        preprocessing=frozenset({"none"}),
        dealers=frozenset({"dealer"}),
        shufflers=frozenset({"shuffler-1", "shuffler-2"}),
        trusted_curator=True,
        approval=True,
    )


def test_the_example_of_the_documents_has_every_key(tmp_path):
    """docs/policy.md shows each key with a value that is not its default."""
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(\[policy\]\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    rules = vars(load(tmp_path, example))
    assert [key for key, rule in rules.items() if rule == getattr(ANYTHING, key)] == []


@pytest.mark.parametrize(
    ("line", "came"),
    [
        ('coordinators = "alice"', "'alice'"),
        ('coordinators = ["Alice"]', "['Alice']"),
        ("coordinators = [1]", "[1]"),
        ('statistics = ["kendal_tau"]', "['kendal_tau']"),
        ('statistics = ["uniformity"]', "['uniformity']"),
        ('kernels = ["0123"]', "['0123']"),
        (f'kernels = ["{HASH.upper()}"]', "'0123456789ABCDEF"),
        ('fields = [""]', "['']"),
        ("max_epsilon = 0", "0"),
        ("max_epsilon = [1]", "[1]"),
        ("max_delta = 1", "1"),
        ('max_delta = "-1e-9"', "'-1e-9'"),
        ('public_labels = "label"', "'label'"),
        ('dealers = ["Dealer"]', "['Dealer']"),
        ("shufflers = [2]", "[2]"),
        ("min_records = -1", "-1"),
        ("min_records = 1.5", "1.5"),
        ("min_nodes = true", "True"),
        ('min_colluding = "1"', "'1'"),
        ('noise = ["loud"]', "['loud']"),
        ('coins = ["fair"]', "['fair']"),
        ('backend = ["clear"]', "['clear']"),
        ('preprocessing = "none"', "'none'"),
        ('approval = "yes"', "'yes'"),
        ("trusted_curator = 1", "1"),
    ],
)
def test_values_under_policy(tmp_path, line, came):
    key = line.split(" = ")[0]
    refused(tmp_path, f"[policy]\n{line}\n", f"key 'policy.{key}'", "was expected", came)
