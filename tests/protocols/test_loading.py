"""umpc.protocols.registry: a protocol is loaded when it is first asked for, and not before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy.protocol import ToyProtocol
from umpc.protocols.registry import GROUP, PROTOCOLS, Protocols

NAMES_ONLY = """
import sys
from umpc.protocols.registry import PROTOCOLS, chosen_protocol

assert "gopa" in PROTOCOLS and "bell" not in PROTOCOLS and len(list(PROTOCOLS)) == len(PROTOCOLS)
kinds = [name for name in sys.modules if name.endswith("protocol") and name.count(".") == 3]
assert kinds == ["umpc.protocols.base.protocol"], kinds
chosen_protocol("u-mpc", {"backend": "shared"})
kinds = [name for name in sys.modules if name.endswith("protocol") and name.count(".") == 3]
assert kinds == ["umpc.protocols.base.protocol", "umpc.protocols.u_mpc.protocol"], kinds
"""


def test_names_and_a_choice_load_no_other_protocol():
    ended = subprocess.run([sys.executable, "-c", NAMES_ONLY], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_the_place_says_what_chooses_a_protocol_as_its_class_does():
    for name, protocol in PROTOCOLS.items():
        assert PROTOCOLS.chosen_by(name) == protocol.chosen_by, name


def test_a_protocol_is_made_once():
    assert PROTOCOLS["gopa"] is PROTOCOLS["gopa"]


@pytest.fixture
def installed(monkeypatch, tmp_path: Path) -> None:
    """A package that brings a protocol, and would take the name of one of ours."""
    folder = tmp_path / "somebody-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1\n")
    toy = "tests.toy.protocol:ToyProtocol"
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\ntoy-sum = {toy}\ngopa = {toy}\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_package_brings_a_protocol_and_replaces_none(installed):
    protocols = Protocols({})
    assert isinstance(protocols["toy-sum"], ToyProtocol)
    assert protocols["gopa"].name == "gopa"
    assert protocols.chosen_by("toy-sum") == protocols["toy-sum"].chosen_by


def test_a_node_loads_only_those_that_its_file_names(installed):
    protocols = Protocols({})
    protocols.allow(())
    assert "toy-sum" not in protocols and "gopa" in protocols
    with pytest.raises(KeyError):
        protocols["toy-sum"]
    protocols.allow(["another"])
    protocols.allow(["toy-sum"])
    assert isinstance(protocols["toy-sum"], ToyProtocol)
