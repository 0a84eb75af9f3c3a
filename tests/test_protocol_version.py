"""The protocol's version is not the package's: a study's hash outlives an upgrade."""

from __future__ import annotations

import subprocess
import sys

import msgspec

import umpc
from umpc.protocol_version import PROTOCOL
from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant

STUDY = Study(
    name="hash-2026",
    statistic="kendall_tau",
    kernels=("sign(x[0] - y[0]) * sign(x[1] - y[1])",),
    fields=(FieldText("age", "0", "127", "1"), FieldText("balance", "-100", "1000", "0.5")),
    epsilon="1",
    max_colluding=1,
    coordinator="coordinator",
    nodes=(Participant("north", "n:1"), Participant("south", "s:1")),
    settings=UMpcSettings(),
)
HASH = "667b973c190b40cb2d97c8c3de8e45d770a310e8a2c660d3e9036db7fbf75682"
"""A hash that nodes may have in their ledgers. Another one would charge every study again: either
undo the change, or give PROTOCOL a new number and write the former hash into `study/former.py`."""


def test_the_hash_of_a_study_is_known():
    assert STUDY.hash.hex() == HASH
    assert msgspec.json.decode(STUDY.encode())["version"] == PROTOCOL == "0.2.0"


def test_another_package_makes_the_same_study():
    program = (
        "import umpc; umpc.__version__ = '9.9.9'\n"
        "from tests.test_protocol_version import STUDY\n"
        "print(STUDY.hash.hex())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == HASH, done.stderr
    assert umpc.__version__ != "9.9.9"
