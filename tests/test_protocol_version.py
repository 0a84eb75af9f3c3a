"""The protocol's version is not the package's, and a study's hash outlives both."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

import umpc
from tests.support.vector import vector_study
from umpc.errors import VersionMismatch
from umpc.protocol_version import PROTOCOL
from umpc.protocols.registry import decode_document, decode_study, protocol_of
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
"""A hash that nodes may have in their ledgers. Another one would charge every study again: undo the
change, or give `HASH_TAG` a new number and write the former hash into `study/former.py`."""
COURSE = "208bbab3573f2a09c424aceb2be0109dac72ba3b571b0c1cfbb68ba34f1f3ca2"
"""The identity of a training that commit 0f244e53 computed, whose further steps are paid."""
MEMBERS_CHECKED = "8dc6056bcda9ad0d181d3af462b45fbb2161b931a96c20b9d4aaa73ef4fd7188"
"""That of the same study with `members_checked = 64`."""

CHECKED = "cff31825b48171ea6f1e0de54088034999ad2f1bc83d41ab9417ee1ce6c6571d"
"""That of the same study without a dealer and with `transfers = "checked"`, by 0.3.0."""


def test_the_hash_of_a_study_is_known():
    assert STUDY.hash.hex() == HASH
    assert msgspec.json.decode(STUDY.encode())["version"] == PROTOCOL


def test_the_hash_of_a_training_is_known():
    study = vector_study(course="train", steps=5)
    course = protocol_of(study).course(study)
    assert course is not None and course.id.hex() == COURSE


@pytest.mark.parametrize("version", ["0.2.0", PROTOCOL, "9.9.9"])
def test_an_identity_is_of_the_question_and_not_of_the_protocol_that_answers_it(version: str):
    spoken = STUDY.replaced(version=version)
    assert spoken.hash.hex() == HASH and spoken.encode() != STUDY.replaced(version="1").encode()


def test_a_document_of_another_version_is_read_where_a_site_stored_it_and_nowhere_else():
    study = vector_study()
    stored = study.replaced(version="0.2.0").encode()
    assert decode_study(stored, stored=True) == study
    with pytest.raises(VersionMismatch, match=r"for protocol 0\.2\.0, this process speaks"):
        decode_study(stored)


def test_a_study_that_was_released_with_members_checked_is_the_same_study():
    """The key has no effect any more, and the study is still shown again at no cost by it."""
    former = STUDY.replaced(members_checked=64)
    assert former.hash.hex() == MEMBERS_CHECKED
    assert decode_document(former.encode(), [UMpcSettings]) == former


def test_a_study_that_was_released_with_checked_transfers_is_the_same_study():
    """All transfers are checked now, and the study is still shown again at no cost by the key."""
    former = STUDY.replaced(transfers="checked", backend="garbled", preprocessing="none")
    assert former.hash.hex() == CHECKED
    assert decode_document(former.encode(), [UMpcSettings]) == former


def test_another_package_makes_the_same_study():
    program = (
        "import umpc; umpc.__version__ = '9.9.9'\n"
        "from tests.test_protocol_version import STUDY\n"
        "print(STUDY.hash.hex())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == HASH, done.stderr
    assert umpc.__version__ != "9.9.9"
