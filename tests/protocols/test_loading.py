"""umpc.protocols.registry: a protocol is loaded when it is first asked for, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
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


def bring(folder: Path, points: Mapping[str, str]) -> None:
    """Write the metadata of a package with these entry points."""
    metadata = folder / "somebody-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1\n")
    lines = [f"[{GROUP}]", *(f"{name} = {place}" for name, place in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def installed(monkeypatch, tmp_path: Path) -> None:
    """A package that brings a protocol, and would take the name of one of ours."""
    bring(tmp_path, dict.fromkeys(("toy-sum", "gopa"), "tests.toy.protocol:ToyProtocol"))
    monkeypatch.syspath_prepend(tmp_path)


def test_a_package_brings_a_protocol_and_replaces_none(installed):
    protocols = Protocols({})
    assert isinstance(protocols["toy-sum"], ToyProtocol)
    assert protocols["gopa"].name == "gopa"
    assert protocols.chosen_by("toy-sum") == protocols["toy-sum"].chosen_by


ALL_ARE_LOADED = """
import sys
from umpc.protocols.registry import PROTOCOLS, load_all

load_all()
assert type(PROTOCOLS["alone"]).__module__ == "alone" and "several.inside" in sys.modules
"""


def test_a_class_may_be_in_a_module_or_package_at_the_top(tmp_path: Path):
    text = "from tests.toy.protocol import ToyProtocol\nclass Mine(ToyProtocol): pass\n"
    places = {"alone": tmp_path / "alone.py", "several": tmp_path / "several" / "__init__.py"}
    bring(tmp_path, {name: f"{name}:Mine" for name in places})
    places["several"].parent.mkdir()
    for path in (*places.values(), tmp_path / "several" / "inside.py"):
        path.write_text(text)
    path = os.pathsep.join((str(tmp_path), *sys.path))
    ended = subprocess.run(
        [sys.executable, "-c", ALL_ARE_LOADED],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr


def test_a_node_loads_only_those_that_its_file_names(installed):
    protocols = Protocols({})
    protocols.allow(())
    assert "toy-sum" not in protocols and "gopa" in protocols
    with pytest.raises(KeyError):
        protocols["toy-sum"]
    protocols.allow(["another"])
    protocols.allow(["toy-sum"])
    assert isinstance(protocols["toy-sum"], ToyProtocol)
