"""umpc.node.links: whom a node calls for a coordinator, and when it calls nobody."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.studies import make_study
from tests.support.vector import vector_study
from umpc.errors import ApprovalPending, PeerUnavailable, PolicyRefused, StudyError
from umpc.node.approvals import ACCEPTED, REJECTED, Approvals
from umpc.node.links import ContactCheck, called_by
from umpc.node.policy import ANYTHING
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.registry import allowed_as, checked
from umpc.study.document import Study
from umpc.testing import lying
from umpc.transport.certificates import SignedIn
from umpc.transport.tls import Peer

STUDY = checked(make_study(nodes=3, max_colluding=2))


class Me:
    name, role = "node-0", "node"


def names(study: Study, node: str) -> list[str]:
    return [participant.name for _, participant in called_by(study, node)]


def test_a_node_calls_the_nodes_after_it_and_the_dealer():
    assert names(STUDY, "node-0") == ["node-1", "node-2", "dealer"]
    assert names(STUDY, "node-1") == ["node-2", "dealer"]
    assert names(STUDY, "node-2") == ["dealer"]
    with pytest.raises(StudyError, match="'node-7' is not one of the study's nodes"):
        names(STUDY, "node-7")


def test_nodes_that_exchange_nothing_call_nobody():
    single = make_study("a.x", 3, degree=1, noise="distributed", max_colluding=2)
    assert names(single, "node-0") == []
    committee = make_study("a.x", 3, degree=1, noise="in_mpc", max_colluding=2)
    assert names(committee, "node-0") == ["node-1", "node-2"]
    assert names(make_study("a.x", 3, degree=1, noise="in_mpc", coins="dealt"), "node-0") == [
        "node-1",
        "node-2",
        "dealer",
    ]


def checked_by(folder: Path, rules) -> ContactCheck:
    """The check of a node with one data set under these rules."""
    policy, approvals = replace(ANYTHING, **rules), Approvals(folder / "approvals")
    return ContactCheck(Me, lambda study: (policy, approvals))


def ask(folder: Path, **rules):
    """Ask node-0; node-1 answers and nobody else does. Returns: the reply and who was called."""
    called = []

    async def greeted(honest, identity, role, name, address):
        called.append(name)
        return "9.9.9" if name == "node-1" else PeerUnavailable(f"{name} is away")

    check = checked_by(folder, rules)
    request = pb.ContactRequest(study=STUDY.encode())
    with lying("process", greet_or_fail=greeted):
        reply = asyncio.run(check.answer(request, Peer("coordinator", "coordinator")))
    return reply, called


def test_each_answer_comes_with_its_reason(tmp_path):
    reply, called = ask(tmp_path)
    assert called == ["node-1", "node-2", "dealer"]
    assert [(each.name, each.version, each.failure.error) for each in reply.contacted] == [
        ("node-1", "9.9.9", ""),
        ("node-2", "", "PeerUnavailable"),
        ("dealer", "", "PeerUnavailable"),
    ]
    assert reply.contacted[1].failure.message == "node-2 is away"


@pytest.mark.parametrize(
    ("caller", "rules", "error", "words"),
    [
        ("other", {}, StudyError, "coordinator is 'coordinator', and 'other' asked"),
        ("coordinator", {"min_nodes": 4}, PolicyRefused, "min_nodes"),
        ("coordinator", {"approval": True}, ApprovalPending, "calls nobody for a study that its"),
    ],
)
def test_nobody_is_called_against_the_sites_rules(tmp_path, caller, rules, error, words):
    called = []
    check = checked_by(tmp_path, rules)
    request = pb.ContactRequest(study=STUDY.encode())
    noted = lying("process", greet_or_fail=lambda *parts: called.append(parts))
    with noted, pytest.raises(error, match=words):
        asyncio.run(check.answer(request, Peer(caller, "coordinator")))
    assert called == []


def test_a_certificate_for_hours_has_only_its_own_studies_called(tmp_path):
    check, request = checked_by(tmp_path, {}), pb.ContactRequest(study=STUDY.encode())
    noted = lying("process", greet_or_fail=lambda *parts: asyncio.sleep(0, "9.9.9"))
    for studies, is_called in (((STUDY.hash.hex(),), True), (("0" * 64,), False), ((), False)):
        who = SignedIn("sub-1", "st-mary", studies)
        caller = Peer("coordinator", "coordinator", who)
        with noted if is_called else pytest.raises(StudyError, match="may ask other studies"):
            assert len(asyncio.run(check.answer(request, caller)).contacted) == 3


def test_a_rejected_study_is_refused_with_its_reason(tmp_path):
    approvals = Approvals(tmp_path / "approvals")
    with pytest.raises(ApprovalPending):
        approvals.require(STUDY, "node-0")
    approvals.decide(STUDY.hash.hex(), REJECTED, "not this year")
    for rules in ({"approval": True}, {}):
        with pytest.raises(
            PolicyRefused, match=r"node-0's administrator rejected.*: not this year"
        ):
            ask(tmp_path, **rules)


def test_after_a_persons_approval_a_node_calls(tmp_path):
    approvals = Approvals(tmp_path / "approvals")
    with pytest.raises(ApprovalPending):
        approvals.require(STUDY, "node-0")
    approvals.decide(STUDY.hash.hex(), ACCEPTED)
    assert len(ask(tmp_path, approval=True)[1]) == 3


def test_a_decision_about_a_training_counts_for_the_calls_of_each_step(tmp_path):
    steps = [checked(vector_study(course="train", steps=2, step=each)) for each in (1, 2)]
    rules = {"approval": True, "public_labels": frozenset("y")}
    approvals, check = Approvals(tmp_path / "approvals"), checked_by(tmp_path, rules)
    known, request = allowed_as(steps[0]), pb.ContactRequest(study=steps[1].encode())
    caller = Peer(steps[1].coordinator, "coordinator")
    with pytest.raises(ApprovalPending):
        approvals.require(steps[0], "node-0", identity=known)
    approvals.decide(known.hex(), ACCEPTED)
    with lying("process", greet_or_fail=lambda *parts: asyncio.sleep(0, "9.9.9")):
        assert asyncio.run(check.answer(request, caller)).contacted
        approvals.decide(known.hex(), REJECTED, "not this year")
        with pytest.raises(PolicyRefused, match="not this year"):
            asyncio.run(check.answer(request, caller))
