"""A study that waits prepared, that was held, that was released, and one that loses a node."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.dialogues.conftest import served
from tests.dialogues.house import NODES, House, certificates
from tests.dialogues.network import Said
from tests.dialogues.talk import BEGIN, SECONDS, WITH_DEALER, Scene, check, study_of
from umpc.coordinator.conductor import Preparation
from umpc.errors import (
    AlreadyRunning,
    CertificateError,
    InsufficientBudget,
    PeerLost,
    PolicyRefused,
    PreparationError,
    RemoteProtocolError,
    StepTimeout,
    UmpcError,
)
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.report import Report
from umpc.transport.authority import Authority

TWO = NODES[:2]
MET = """
prepare    earlier > later: hello
prepare    later > earlier: hello
"""
PREPARED = f"""{BEGIN}{WITH_DEALER}{MET}
park       coordinator > each: park
park       each > coordinator: parked
"""
RUN = """
propose    coordinator > each: propose
propose    each > coordinator: accepted
propose    earlier > later: hello
propose    later > earlier: hello
evaluate   coordinator > each: evaluate
evaluate   earlier > later: masked_fields, open 1
evaluate   later > earlier: masked_fields, open 1
evaluate   each > coordinator: ready
release    coordinator > each: release
release    each > coordinator: released
"""
REPLAYED = """
propose    coordinator > each: propose
propose    each > coordinator: released
"""
FINISHED = """
propose    coordinator > each: propose
propose    each > coordinator: held
release    coordinator > each: release
release    each > coordinator: released
"""


def scene_of(house: House, name: str, *nodes: str, **changes: object) -> Scene:
    return Scene(house, study_of("tables", *(nodes or TWO), name=name, **changes))


def prepared(scene: Scene) -> Preparation | UmpcError:
    """Prepare a scene's study ahead, and check what is left of it."""
    house = scene.house
    found: Preparation | UmpcError = house.run(house.prepare(scene.study))
    house.run(house.end())
    scene.check_charges()
    return found


def losing(house: House, name: str) -> Callable[[Said], Iterable[bytes]]:
    """Lose a process in place of a message."""

    def lose(said: Said) -> Iterable[bytes]:
        house.network.lose(name)
        return []

    return lose


def held(house: House, name: str) -> Scene:
    """A study whose coordinator was lost when both nodes were ready."""
    scene = scene_of(house, name)
    house.network.at("coordinator", "north", "release", losing(house, "coordinator"))
    assert isinstance(scene.run(), PeerLost)
    assert set(scene.states.values()) == {"held"}
    house.mend()
    return scene


def test_a_prepared_study_runs_in_three_round_trips_and_then_answers_again(house):
    scene = scene_of(house, "ahead")
    assert isinstance(prepared(scene), Preparation)
    check(house.network.said, PREPARED, TWO)
    assert set(scene.states.values()) == {"prepared"}
    for dialogue in (RUN, REPLAYED, REPLAYED):
        house.network.said.clear()
        assert isinstance(scene.run(), Report)
        check(house.network.said, dialogue, TWO)


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[House]:
    """Provide a house whose certificates a test may revoke and renew."""
    (tmp_path / "site").mkdir()
    with served(tmp_path / "site", certificates(tmp_path / "keys"), 4) as house:
        yield house
        house.run(house.end())


def renew(house: House, name: str, *holders: str, is_renewed: bool = True) -> None:
    """Give a node a certificate for a new key; its former one is on these processes' lists."""
    authority = Authority.open(house.keys / "authority")
    if holders:
        authority.revoke(authority.issued.find(name))
    for holder in holders:
        shutil.copy(house.keys / "authority/crl.pem", house.keys / holder / "crl.pem")
    if is_renewed:
        authority.issue(name, "node", house.keys / "new")
        for file in ("key.pem", "cert.pem"):
            shutil.copy(house.keys / "new" / file, house.keys / name / file)


LISTS = (("north",), ("north", "coordinator"), ("coordinator",), (*NODES, "coordinator"))


@pytest.mark.parametrize("holders", [(), *LISTS], ids=lambda names: " and ".join(names) or "nobody")
def test_a_prepared_study_runs_after_a_member_has_another_certificate(apart, holders):
    """The preparation serves if its certificates count; if not, the run makes another attempt."""
    scene = scene_of(apart, "ahead of a renewal")
    assert isinstance(prepared(scene), Preparation)
    renew(apart, "south", *holders)
    result = scene.run()
    assert isinstance(result, Report), repr(result)
    assert result.prepared == (not holders)


@pytest.mark.parametrize("holders", LISTS[:2], ids=" and ".join)
def test_so_it_does_where_the_first_try_ends_before_that_member_hears_of_it(apart, holders):
    """South then has its preparation still, with the former certificate, and nobody else has."""
    scene = scene_of(apart, "ahead of a renewal")
    assert isinstance(prepared(scene), Preparation)
    renew(apart, "south", *holders)
    apart.network.hold("coordinator", "south", "propose")
    result = scene.run()
    assert isinstance(result, Report) and not result.prepared, repr(result)
    names = [name for said in apart.network.said for name in said.names]
    assert names.count("propose") == 8, "ahead, ended by north, ended by what south has, anew"


@pytest.mark.parametrize("holders", LISTS[1:], ids=" and ".join)
def test_a_prepared_study_of_a_revoked_member_is_refused_in_one_line(apart, holders):
    scene = scene_of(apart, "ahead of a revocation")
    assert isinstance(prepared(scene), Preparation)
    renew(apart, "south", *holders, is_renewed=False)
    result = scene.run()
    assert isinstance(result, CertificateError) and result.culprit == "south", repr(result)
    assert "the certificate of node 'south' was revoked" in result.message
    assert set(scene.states.values()) == {"nothing"}


def test_a_preparation_ends_with_its_node_and_the_study_runs_from_the_start(house):
    scene = scene_of(house, "ahead of a restart")
    prepared(scene)
    house.restart("south")
    assert scene.states == {"north": "prepared", "south": "nothing"}
    house.mend()
    assert isinstance(scene.run(), Report)
    names = [name for said in house.network.said for name in said.names]
    assert names.count("propose") == 4, "north says that south's answer fits no preparation"


@pytest.mark.parametrize(
    ("sender", "name"),
    [("north", "accepted"), ("south", "hello"), ("north", "masked_fields"), ("south", "ready")],
)
def test_a_prepared_run_that_loses_a_node_is_used_up(house, sender, name):
    scene = scene_of(house, f"ahead, without {sender} at {name}")
    prepared(scene)
    house.network.said.clear()
    house.network.at(sender, "*", name, losing(house, sender))
    result = scene.run()
    assert isinstance(result, PeerLost) and result.culprit == sender
    assert "prepared" not in scene.states.values()
    scene.run_again()


def test_a_preparation_that_is_lost_leaves_nothing(house):
    scene = scene_of(house, "never ahead")
    house.network.at("north", "coordinator", "parked", losing(house, "coordinator"))
    assert isinstance(prepared(scene), UmpcError)
    assert scene.states["south"] in ("prepared", "nothing")
    scene.run_again()


def test_a_study_that_is_prepared_anew_drops_the_earlier_preparation(house):
    scene = scene_of(house, "ahead twice")
    prepared(scene)
    prepared(scene)
    house.network.said.clear()
    assert isinstance(scene.run(), Report)
    check(house.network.said, RUN, TWO)


def test_a_preparation_is_given_up_where_its_node_is_lost_and_the_others_go_on(house):
    """It is charged under the same name, and its attempt has other members."""
    scene = scene_of(house, "ahead without west", *NODES, may_miss=1, max_colluding=1)
    prepared(scene)
    house.network.lose("west")
    result = house.run(house.study(scene.study))
    house.run(house.end())
    assert isinstance(result, Report) and result.missing == ["west"]
    assert scene.states == {"north": "charged", "south": "charged", "west": "prepared"}
    scene.check_charges()
    house.restart("west")
    assert scene.states["west"] == "nothing"


def test_a_site_that_prepares_nothing_says_so(house):
    scene = scene_of(house, "no room")
    with house.under("south", f"{house.rules}[prepare]\nmost = 0\n", again=True):
        scene.check_blame(prepared(scene), PreparationError, "south", "nothing")


@pytest.mark.parametrize("name", ["evaluate", "ready"])
def test_a_prepared_study_whose_coordinator_is_lost_is_used_up(house, name):
    scene = scene_of(house, f"ahead, alone at {name}")
    prepared(scene)
    house.network.at("*", "*", name, losing(house, "coordinator"))
    assert isinstance(scene.run(), UmpcError)
    assert not {"prepared", "charged"} & set(scene.states.values())
    scene.run_again()


def test_a_prepared_node_waits_two_steps_for_the_release(house):
    """Other nodes may still have to meet."""
    scene = scene_of(house, "ahead and late")
    prepared(scene)
    house.network.said.clear()
    moment = house.network.hold("south", "coordinator", "ready")

    async def late() -> None:
        await moment.came.wait()
        await asyncio.sleep(1.5 * SECONDS)
        moment.release()

    assert isinstance(scene.run(late), Report)
    check(house.network.said, RUN, TWO)


def uses_no_record(scene: Scene) -> None:
    """South finds the coordinator out before it says anything about its records."""
    scene.check_blame(scene.run(), RemoteProtocolError, "coordinator", "nothing")
    used = [each for each in scene.house.network.said if each.names[0] == "masked_fields"]
    assert all(each.sender == "north" for each in used)
    scene.run_again()


def short(said: Said) -> list[bytes]:
    del said.message.evaluate.signatures[-1]
    return [said.other(said.message)]


def twice_the_same(said: Said) -> list[bytes]:
    first, *_ = said.message.evaluate.signatures
    said.message.evaluate.signatures[:] = [first, first]
    return [said.other(said.message)]


def another_order(said: Said) -> list[bytes]:
    return [said.other(pb.CoordinatorMessage(release=pb.Release()))]


@pytest.mark.parametrize("lie", [short, twice_the_same, another_order])
def test_no_record_of_a_prepared_study_is_used_without_everybodys_signature(house, lie):
    scene = scene_of(house, f"ahead, {lie.__name__}")
    prepared(scene)
    house.network.said.clear()
    house.network.at("coordinator", "south", "evaluate", lie)
    uses_no_record(scene)


def refused(scene: Scene, left: str) -> None:
    """Run a study that the rules of south refuse now."""
    with scene.house.under("south", "[policy]\ncoordinators = []\n"):
        scene.check_blame(scene.run(), PolicyRefused, "south", left)


def test_the_rules_are_asked_again_before_a_prepared_run_says_anything(house):
    scene = scene_of(house, "ahead and refused")
    prepared(scene)
    house.network.said.clear()
    refused(scene, "nothing")
    said = [each.names for each in house.network.said if each.sender == "south"]
    assert said == [("failure",)]
    scene.run_again()


def test_nodes_meet_while_the_dealers_seed_is_on_its_way(house):
    scene = scene_of(house, "a late dealer")
    moments = [house.network.hold("dealer", name, "node_seed") for name in TWO]
    met: list[str] = []

    async def beside() -> None:
        for moment in moments:
            await moment.came.wait()
        await house.clock.quiet()
        met.extend(each.sender for each in house.network.said if each.names == ("hello",))
        for moment in moments:
            moment.release()

    assert isinstance(scene.run(beside), Report)
    assert sorted(met) == ["north", "south"]


@pytest.mark.parametrize("order", ["agree", "evaluate", "begin", "park", "ask", "propose"])
def test_a_held_study_is_released_or_dropped_and_nothing_else(house, order):
    scene = held(house, f"held and asked to {order}")

    def other(said: Said) -> list[bytes]:
        message = pb.CoordinatorMessage()
        getattr(message, order).SetInParent()
        return [said.other(message)]

    house.network.at("coordinator", "south", "release", other)
    result = scene.run()
    assert isinstance(result, RemoteProtocolError) and result.culprit == "coordinator"
    assert "where Release or Drop was due" in result.message
    assert scene.states["south"] == "held"
    scene.run_again()


# --- rules, reservation, table: in this order -----------------------------------------------------


def test_a_study_that_the_rules_refuse_reserves_nothing(house):
    scene = scene_of(house, "refused")
    refused(scene, "nothing")
    scene.run_again()


def test_a_table_that_is_away_gives_the_reservation_back(house):
    scene = scene_of(house, "no table")
    table = house.folder / "south" / "table.csv"
    text = table.read_text()
    table.unlink()
    result = scene.run()
    assert isinstance(result, UmpcError) and result.culprit == "south"
    table.write_text(text)
    scene.run_again()


def test_an_exhausted_budget_ends_a_study_before_the_table_is_read(house):
    """A coordinator once read the maximum of a column in 17 proposals without any budget."""
    scene = scene_of(house, "too dear", epsilon="1e10")
    table = house.folder / "south" / "table.csv"
    text = table.read_text()
    table.unlink()  # whoever reads it says so
    result = scene.run()
    table.write_text(text)
    assert isinstance(result, InsufficientBudget)
    assert set(scene.states.values()) == {"nothing"}


def test_two_versions_of_a_frame_end_a_study_in_which_all_are_ready(house):
    """Nobody waits for the second one: the last look before the charge finds it."""
    scene = scene_of(house, "two versions")
    frames: list[bytes] = []

    def other(said: Said) -> list[bytes]:
        said.message.frame.payload = bytes(len(said.message.frame.payload) - 1) + b"\x01"
        frames.append(said.other(said.message))
        return [said.data, frames[0]]

    house.network.at("north", "south", "open 1", other)
    result = scene.run()
    assert isinstance(result, RemoteProtocolError) and result.culprit == "north"
    scene.check_said()
    scene.run_again()


# --- held, released, lost -------------------------------------------------------------------------


def test_a_held_study_is_finished_by_the_next_run(house):
    scene = held(house, "held")
    assert isinstance(scene.run(), Report)
    check(house.network.said, FINISHED, TWO)


def test_a_held_study_survives_a_restart_of_its_nodes(house):
    scene = held(house, "held and restarted")
    for name in TWO:
        house.restart(name)
    assert set(scene.states.values()) == {"held"}
    house.mend()
    assert isinstance(scene.run(), Report)
    check(house.network.said, FINISHED, TWO)


def test_one_that_has_charged_and_one_that_holds_end_with_the_same_attempt(house):
    scene = scene_of(house, "half released")
    house.network.at("coordinator", "south", "release", losing(house, "south"))
    result = scene.run()
    assert isinstance(result, PeerLost) and result.culprit == "south"
    assert scene.states == {"north": "charged", "south": "held"}
    scene.run_again()
    said = [each.names[0] for each in house.network.said if each.receiver == "coordinator"]
    assert sorted(said) == ["held", "released", "released"]


def test_what_one_node_holds_alone_is_dropped_and_the_study_runs_anew(house):
    scene = scene_of(house, "held by one")
    house.network.at("south", "coordinator", "ready", losing(house, "coordinator"))
    house.network.hold("north", "coordinator", "ready")
    scene.run()
    both = scene.states
    house.restart("north")
    house.nodes["north"].dataset.ledger.drop(scene.study.hash)
    assert both["south"] == "held" and scene.states == {"north": "nothing", "south": "held"}
    scene.run_again()
    drops = [each for each in house.network.said if each.names == ("drop",)]
    assert [each.receiver for each in drops] == ["south"]


def test_rules_that_refuse_a_held_study_keep_it(house):
    scene = held(house, "held and refused")
    refused(scene, "held")
    scene.run_again()


def test_two_runs_at_once_charge_once(house):
    scene = scene_of(house, "twice at once")
    moment = house.network.hold("north", "coordinator", "prepared")
    second: list[Report | UmpcError] = []

    async def beside() -> None:
        await moment.came.wait()
        second.append(await house.study(scene.study))
        moment.release()

    assert isinstance(scene.run(beside), Report)
    (refused,) = second
    assert isinstance(refused, AlreadyRunning)


@pytest.mark.parametrize("name", ["accepted", "prepared", "ready"])
def test_a_study_that_may_miss_a_node_goes_on_without_it(house, name):
    scene = scene_of(house, f"without west at {name}", *NODES, may_miss=1, max_colluding=1)
    house.network.at("west", "coordinator", name, losing(house, "west"))
    result = house.run(house.study(scene.study))
    house.run(house.end())
    assert isinstance(result, Report) and result.missing == ["west"]
    scene.check_charges()
    left = "held" if name == "ready" else "nothing"
    assert scene.states == {"north": "charged", "south": "charged", "west": left}


@pytest.mark.parametrize(
    ("silent", "name"),
    [("south", "opened"), ("south", "prepared"), ("north", "masked_fields"), ("south", "ready")],
)
def test_a_process_that_hangs_is_named_after_seconds(house, silent, name):
    scene = scene_of(house, f"{silent} hangs at {name}", seconds_per_step=300)

    def hang(said: Said) -> Iterable[bytes]:
        house.network.silence(silent)
        return [said.data]

    house.network.at(silent, "*", name, hang)
    begun = house.clock.now
    ended: list[float] = []

    async def timed() -> Report | UmpcError:
        result = await house.study(scene.study)
        ended.append(house.clock.now - begun)
        return result

    result = house.run(timed())
    assert isinstance(result, PeerLost | StepTimeout) and result.culprit == silent
    assert ended[0] < 60, "8 s of silence, four times as long on a busy machine"
    house.run(house.end())
    scene.run_again()


@pytest.mark.parametrize("name", ["north", "south", "dealer"])
def test_a_process_that_is_not_there_is_named_and_nothing_is_reserved(house, name):
    scene = scene_of(house, f"without {name}")
    house.network.lose(name)
    result = scene.run()
    assert isinstance(result, UmpcError) and result.culprit == name
    assert set(scene.states.values()) == {"nothing"}
    scene.run_again()


def test_nothing_of_a_study_is_left_in_a_nodes_folder(house):
    """Files beside the ledger are those of the site, whatever became of its studies."""
    before = house.nodes["north"].files
    scene = held(house, "files")
    scene.run_again()
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in before} == {
        name.removesuffix("-wal").removesuffix("-shm") for name in house.nodes["north"].files
    }
