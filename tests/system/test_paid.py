"""Paid means received: a process is killed after *ready*, and the study is finished later.

The coordinator runs the study again under its name. The result is that of the one attempt, and
every node has charged for it once. A study for which nobody charged runs anew.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from fractions import Fraction

import pytest

from tests.support.node_ledgers import beside, held_by, share_of, start_again, wait_until
from tests.system.conftest import SHUFFLERS, Lab, Outcome, running
from umpc.coordinator.studyfile import load_study_file
from umpc.deployment.processes import Served, stop
from umpc.errors import AlreadyReleased, PeerLost, UmpcError
from umpc.proto import codec
from umpc.study import messages as m
from umpc.transport.authority import Authority
from umpc.transport.identity import Identity, load_identity
from umpc.transport.stream import RpcStream
from umpc.transport.tls import node_stub

EPSILON = Fraction(1, 10)
AT_A_NODE = [
    "after-hold",
    "after-ready",
    "release-asked",
    "before-charge",
    "charge-before-commit",
    "charge-after-commit",
    "charge-anchored",
    "after-charge",
    "before-send",
    "after-send",
]
"""The points of a node from which on its share is on disk."""


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Lab]:
    """Provide one dealer and two nodes for all tests."""
    with running(tmp_path_factory, 2, "100") as lab:
        yield lab


def spent(lab: Lab) -> list[Fraction]:
    return [beside(lab, name).account.spent.epsilon for name in lab.names]


def charged_once(lab: Lab, before: list[Fraction]) -> None:
    assert spent(lab) == [value + EPSILON for value in before]
    for name in lab.names:
        assert not beside(lab, name).account.open and not beside(lab, name).held


def run(lab: Lab, name: str, **changes) -> Outcome:
    return lab.run(name=name, epsilon="0.1", **changes)


@pytest.mark.parametrize("point", AT_A_NODE)
def test_a_node_that_is_killed_finishes_the_same_attempt_when_it_is_back(here, point):
    before = spent(here)
    start_again(here, "node-2", point, "100")
    first = run(here, point)
    assert first.code in (0, PeerLost.exit_code), first.error
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL, "the point was not reached"
    held = {name: [each.share for each in beside(here, name).held] for name in here.names}
    start_again(here, "node-2", epsilon="100")
    again = run(here, point)
    assert again.code == 0, again.error
    for name in here.names:
        # A share that was held is the one that left, unless the study ran anew as nobody had
        # charged: the coordinator then had said so to the others.
        if held[name] and again.report["replayed"]:
            assert [share_of(here, name, point)] == held[name]
    assert again.report["replayed"] == (point not in ("after-hold",))
    if first.code == 0:
        assert first.report["estimate"] == again.report["estimate"]
    assert run(here, point).report["estimate"] == again.report["estimate"]
    charged_once(here, before)


@pytest.mark.parametrize("point", ["before-release", "answered-release"])
def test_a_coordinator_that_is_killed_finishes_the_study_when_it_is_started_again(here, point):
    """It dies when all nodes are ready, or when the first of them has charged."""
    before = spent(here)
    start_again(here, "node-2", epsilon="100")
    here.arm("coordinator", f"{point}:kill")
    try:
        first = run(here, point)
    finally:
        here.disarm()
    assert first.code == -signal.SIGKILL and not first.output
    kept = {name: share_of(here, name, point) or held_by(here, name, point) for name in here.names}
    assert all(kept.values())
    again = run(here, point)
    assert again.code == 0 and again.report["replayed"], again.error
    assert {name: share_of(here, name, point) for name in here.names} == kept
    assert run(here, point).report["estimate"] == again.report["estimate"]
    charged_once(here, before)


def test_a_node_that_stalls_after_the_charge_of_another_burns_nothing(here):
    """node-2 stands still before its charge, until the coordinator has given up."""
    before = spent(here)
    stop([here.served["node-2"].process])
    here.arm("node-2", "before-charge:stop")
    here.deployment.start_node("node-2", here.table("node-2"), "100")
    here.served.update(here.deployment.wait_until_ready())
    first = run(here, "stalls")
    assert first.code == PeerLost.exit_code and "Run the study again" in first.last_line
    here.served["node-2"].process.kill()
    start_again(here, "node-2", epsilon="100")
    again = run(here, "stalls")
    assert again.code == 0 and again.report["replayed"], again.error
    charged_once(here, before)


def test_another_coordinator_makes_no_node_drop_what_it_holds(here):
    """It knows the study, as every process of it does, and says that nobody has charged."""
    before = spent(here)
    start_again(here, "node-2", "before-charge", "100")
    assert run(here, "rival").code == PeerLost.exit_code
    start_again(here, "node-2", epsilon="100")
    held = held_by(here, "node-2", "rival")
    assert held
    file = load_study_file(here.study_file(name="rival", epsilon="0.1"))
    document = file.study("coordinator").encode()
    folder = here.folder / "rival"
    Authority.open(here.folder / "authority").issue("rival", "coordinator", folder)
    asyncio.run(give_up(load_identity(folder, "coordinator"), document, here.served["node-2"]))
    assert held_by(here, "node-2", "rival") == held
    again = run(here, "rival")
    assert again.code == 0 and again.report["replayed"], again.error
    charged_once(here, before)


async def give_up(identity: Identity, document: bytes, node: Served) -> None:
    """Propose a study to a node, and give it up before the node answers."""
    stream = RpcStream("node-2", "connect", codec.decode_node, ahead=8)
    try:
        await stream.connect(identity, "node", node.address, 10)
        stream.begin(node_stub(stream.channel).Study())
        await stream.write(codec.encode_coordinator(m.Propose(document, False)))
        await stream.write(codec.encode_coordinator(m.Abort("", "nobody has charged", False)))
        with pytest.raises(UmpcError):
            while True:
                await stream.next("propose", 20)
    finally:
        stream.cancel()


def test_a_failure_before_anybody_may_have_charged_gives_the_budget_back(here):
    """node-2 dies before it is ready; node-1 was ready, and drops what it held."""
    before = spent(here)
    start_again(here, "node-2", "before-ready", "100")
    assert run(here, "gives back").code == PeerLost.exit_code
    assert wait_until(lambda: not beside(here, "node-1").held)
    start_again(here, "node-2", epsilon="100")
    assert not run(here, "gives back").report["replayed"]
    charged_once(here, before)


def test_a_finished_attempt_is_not_prepared_anew(here):
    here.arm("coordinator", "before-release:kill")
    try:
        assert run(here, "prepared").code == -signal.SIGKILL
    finally:
        here.disarm()
    refused = here.run(command="prepare", name="prepared", epsilon="0.1")
    assert refused.code == AlreadyReleased.exit_code and "finishes it" in refused.last_line
    assert run(here, "prepared").report["replayed"]


@pytest.mark.parametrize("who", ["coordinator", "node-2"])
def test_messages_for_shufflers_are_finished_too(tmp_path, who):
    point = "answered-release" if who == "coordinator" else "before-charge"
    lab = Lab(tmp_path, 2, {who: {"UMPC_FAILPOINT": f"{point}:kill"}})
    study = {"protocol": "ghazi-shuffle", "bins": {"age": 2, "balance": 2}, "dealer": None}
    study |= {"edges": None, "shufflers": [(name, "") for name in SHUFFLERS]}
    try:
        lab.start("10", dealer=False, shufflers=True)
        study["shufflers"] = [(name, lab.served[name].address) for name in SHUFFLERS]
        assert lab.run(**study).code in (-signal.SIGKILL, PeerLost.exit_code)
        lab.disarm()
        if who != "coordinator":
            start_again(lab, who)
        again = lab.run(**study)
        assert again.code == 0 and again.report["replayed"], again.error
        assert lab.run(**study).report["estimate"] == again.report["estimate"]
        assert spent(lab) == [1, 1]
    finally:
        lab.stop()
