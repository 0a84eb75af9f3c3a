"""umpc.protocols.loading: a protocol is loaded when it is first asked for, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.toy.protocol import ToyProtocol
from umpc.protocols.loading import ProtocolPlace, Protocols
from umpc.protocols.registry import PROTOCOLS

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


def places() -> Protocols:
    return Protocols({"gopa": ProtocolPlace("umpc.protocols.gopa.protocol", "GopaProtocol")})


def test_names_and_a_choice_load_no_other_protocol():
    ended = subprocess.run([sys.executable, "-c", NAMES_ONLY], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_the_place_says_what_chooses_a_protocol_as_its_class_does():
    for name, protocol in PROTOCOLS.items():
        assert PROTOCOLS.chosen_by(name) == protocol.chosen_by, name


def test_a_protocol_is_made_once():
    protocols = places()
    assert protocols["gopa"] is protocols["gopa"]


def test_others_may_follow_and_go():
    protocols = places()
    toy = protocols["toy"] = ToyProtocol()
    assert list(protocols) == ["gopa", "toy"] and protocols["toy"] is toy
    assert protocols.chosen_by("toy") == toy.chosen_by
    del protocols["toy"]
    assert list(protocols) == ["gopa"] and "toy" not in protocols
    with pytest.raises(KeyError):
        protocols["toy"]
