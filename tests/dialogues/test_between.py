"""Events between two messages of a run, and the effect of rules and limits on the study."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.dialogues.house import NODES, House
from tests.dialogues.network import Said
from tests.dialogues.talk import Scene
from tests.dialogues.test_later_runs import held, prepared, scene_of, uses_no_record
from tests.dialogues.test_lies import flipped
from umpc.coordinator.conductor import Preparation
from umpc.errors import (
    AlreadyReleased,
    LedgerError,
    PolicyRefused,
    PreparationError,
    RemoteProtocolError,
    StepTimeout,
    UmpcError,
)
from umpc.node.audit.reading import rows
from umpc.node.audit.trail import trail_beside
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.report import Report
from umpc.testing import without


def test_two_streams_that_finish_a_held_study_charge_once_and_have_the_same_result(house):
    """The second one charges between *Held* and the order on the first one."""
    scene = held(house, "held, and asked for twice")
    moment = house.network.hold("coordinator", "south", "release")
    second: list[Report | UmpcError] = []

    async def beside() -> None:
        await moment.came.wait()
        second.append(await house.study(scene.study))
        moment.release()

    first = scene.run(beside)
    assert isinstance(first, Report) and isinstance(second[0], Report), repr((first, second))
    assert first.estimate == second[0].estimate
    again = ("release", "0", "again, nothing charged")
    cost = scene.study.epsilon
    for name in NODES[:2]:
        trail = rows(trail_beside(house.nodes[name].dataset.config.ledger))
        own = [each for each in trail if each["study"] == scene.study.hash.hex()]
        facts = [(each["event"], each["epsilon"], each["note"]) for each in own]
        told = [each for each in facts if each[0] in ("charge", "release")]
        assert told == [("charge", cost, ""), ("release", cost, ""), again]


@pytest.mark.parametrize("order", ["release", "drop"])
def test_a_held_study_that_is_charged_before_its_order_comes_stays_charged_once(house, order):
    scene = held(house, f"held, charged, and asked to {order}")
    ledger, name = house.nodes["south"].dataset.ledger, scene.study.whole.hash

    def charged(said: Said) -> list[bytes]:
        ledger.charge(name, ledger.held(name).attempt)
        message = pb.CoordinatorMessage()
        getattr(message, order).SetInParent()
        return [said.other(message)]

    house.network.at("coordinator", "south", "release", charged)
    result = scene.run()
    assert isinstance(result, Report) == (order == "release"), repr(result)
    assert scene.states["south"] == "charged"
    scene.run_again()


Ended = Report | UmpcError


def raced(scene: Scene, *, is_charged: bool) -> tuple[Ended, Ended]:
    """Two runs of a study at once, of which the second has the first one's attempt dropped.

    Both nodes are ready in the first run, and its orders to release wait. North's *Held* is changed
    on its way, so the second run finds two attempts, has both dropped, and makes another one.

    Args: is_charged: the first run's orders arrive after the second attempt is charged; otherwise
        while it is held.

    Returns: how the first run ended, and how the second did.
    """
    house = scene.house
    first, second = (
        [house.network.hold("coordinator", name, "release") for name in NODES[:2]] for _ in range(2)
    )
    house.network.at("north", "coordinator", "held", lambda said: [flipped(said)])

    async def both() -> tuple[Ended, Ended]:
        runs = []
        for moments in (first, second):
            runs.append(asyncio.create_task(house.study(scene.study)))
            for moment in moments:
                await moment.came.wait()
        for moments in (second, first) if is_charged else (first, second):
            for moment in moments:
                moment.release()
            await house.clock.quiet()
        return await runs[0], await runs[1]

    found = house.run(both())
    house.run(house.end())
    scene.check_charges()
    return found


def answers(house: House) -> list[str]:
    """The last words of the nodes in both runs."""
    said = (each.names[0] for each in house.network.said if each.receiver == "coordinator")
    return sorted(name for name in said if name in ("failure", "released"))


RACES: dict[str, tuple[bool, type[UmpcError]]] = {
    "one attempt is charged": (True, AlreadyReleased),
    "a charge is of a held attempt": (False, LedgerError),
}
"""Check → whether the second attempt is charged when the first run asks, and the refusal."""


@pytest.mark.parametrize("check", RACES)
def test_a_run_whose_attempt_was_dropped_gets_no_share(house, check):
    is_charged, refusal = RACES[check]
    scene = scene_of(house, f"dropped, {check}")
    first, second = raced(scene, is_charged=is_charged)
    assert type(first) is refusal and first.culprit in NODES[:2], repr(first)
    assert isinstance(second, Report), repr(second)
    assert answers(house) == ["failure", "failure", "released", "released"]
    assert scene.run_again().estimate == second.estimate


@pytest.mark.parametrize("check", RACES)
def test_without_the_check_it_gets_the_share_of_the_charged_attempt_and_no_other(house, check):
    """The message is made from the ledger's row, so a second share does not leave even then."""
    is_charged, _ = RACES[check]
    scene = scene_of(house, f"dropped, without: {check}")
    with without(check):
        _, second = raced(scene, is_charged=is_charged)
    assert isinstance(second, Report), repr(second)
    assert answers(house) == ["released"] * 4
    assert scene.run_again().estimate == second.estimate


@pytest.mark.parametrize("is_prepared", [False, True], ids=["fresh", "prepared"])
def test_a_delta_that_the_rules_refuse_is_not_charged(house, is_prepared):
    scene = scene_of(house, "much delta", delta="1e-6", noise="skellam")
    if is_prepared:
        assert isinstance(prepared(scene), Preparation)
    rules = house.rules.replace("[policy]", '[policy]\nmax_delta = "1e-9"')
    with house.under("south", rules):
        result = scene.run()
    scene.check_blame(result, PolicyRefused, "south", "nothing")
    assert "max_delta" in str(result)
    scene.run_again()


def test_a_run_ends_where_the_site_reserves_no_longer(house):
    scene = scene_of(house, "too long", seconds_per_step=600)
    rules = house.rules.replace("[policy]", "hold_hours = 0.05\n[policy]")
    with house.under("south", rules, again=True):
        house.network.hold("north", "south", "masked_fields")
        result = scene.run()
    assert isinstance(result, StepTimeout) and "hold_hours" in result.message, repr(result)
    scene.run_again()


def of_the_members(house: House) -> list[bytes]:
    """The signatures of the members, which the nodes made for the last preparation."""
    found = [each for each in house.network.said if each.names == ("begin",)]
    return list(found[-1].message.begin.signatures)


def of_the_attempt(house: House) -> list[bytes]:
    """The signatures of the attempt, which the nodes made for the last preparation."""
    found = [each for each in house.network.said if each.names == ("prepared",)]
    by_sender = {each.sender: each.message.prepared.signature for each in found}
    return [by_sender[name] for name in NODES[:2]]


@pytest.mark.parametrize("kind", [of_the_members, of_the_attempt])
def test_signatures_of_something_else_start_no_prepared_run(
    house: House, kind: Callable[[House], list[bytes]]
):
    """Those of the members, and those of an earlier preparation, which the last one replaced."""
    scene = scene_of(house, f"ahead, {kind.__name__}")
    prepared(scene)
    signatures = kind(house)
    if kind is of_the_attempt:
        prepared(scene)
    house.network.said.clear()

    def other(said: Said) -> list[bytes]:
        assert list(said.message.evaluate.signatures) != signatures
        said.message.evaluate.signatures[:] = signatures
        return [said.other(said.message)]

    house.network.at("coordinator", "south", "evaluate", other)
    uses_no_record(scene)


def test_a_second_agreement_with_another_opening_ends_the_study(house):
    """South was restarted after the preparation, so all agree once more."""
    scene = scene_of(house, "agreed on twice")
    prepared(scene)
    house.restart("south")
    house.mend()
    house.network.at("north", "coordinator", "opened", lambda said: [flipped(said)])
    scene.check_blame(scene.run(), RemoteProtocolError, "north", "nothing")
    scene.run_again()


def test_a_parking_that_fills_up_meanwhile_refuses_the_later_study(house):
    with house.under("south", f"{house.rules}[prepare]\nmost = 1\n", again=True):
        is_parked_once(house)
    house.restart("north")  # nothing is left prepared, which would end in a later test


def is_parked_once(house: House) -> None:
    first, second = (scene_of(house, f"the {name} to be parked") for name in ("first", "second"))
    moment = house.network.hold("coordinator", "south", "park")
    found: list[Preparation | UmpcError] = []

    async def both() -> Preparation | UmpcError:
        task = asyncio.create_task(house.prepare(first.study))
        await moment.came.wait()
        found.append(await house.prepare(second.study))
        moment.release()
        return await task

    result = house.run(both())
    house.run(house.end())
    assert isinstance(found[0], Preparation), repr(found)
    assert isinstance(result, PreparationError) and result.culprit == "south", repr(result)
    assert (first.states["south"], second.states["south"]) == ("nothing", "prepared")
