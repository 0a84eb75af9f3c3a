"""A coordinator who has signed in: what nodes answer, and what its certificate does not open."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.dialogues.conftest import served
from tests.dialogues.house import NODES, PLACES, House, certificates
from tests.dialogues.network import Said
from tests.dialogues.talk import Scene, study_of
from umpc.coordinator.conductor import Preparation
from umpc.errors import CertificateError, PeerLost, StudyError, UmpcError
from umpc.node.audit.reading import rows
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.registry import allowed_as
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.testing import without
from umpc.transport.authority import Authority, request
from umpc.transport.certificates import SignedIn
from umpc.transport.files import write_public
from umpc.transport.stream import RpcStream
from umpc.transport.tls import node_stub, shuffler_stub

TWO = NODES[:2]
LISTED = "a certificate lists the study"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Provide a house whose coordinator may get another certificate."""
    (tmp_path / "site").mkdir()
    with served(tmp_path / "site", certificates(tmp_path / "keys"), 4) as house:
        yield house
        house.run(house.end())


def sign_in(house: House, *studies: Study, hours: float = 8) -> None:
    """Give the coordinator a certificate for these studies."""
    folder = house.keys / "coordinator"
    csr = request("coordinator", "coordinator", folder).read_bytes()
    who = SignedIn("sub-1", "st-mary", tuple(allowed_as(each).hex() for each in studies))
    names = {"name": "coordinator", "role": "coordinator"}
    authority = Authority.open(house.keys / "authority")
    write_public(folder / "cert.pem", authority.sign(csr, days=hours / 24, signed_in=who, **names))


def revoke(house: House, *holders: str) -> None:
    authority = Authority.open(house.keys / "authority")
    authority.revoke(authority.issued.find("coordinator"))
    for holder in holders:
        shutil.copy(house.keys / "authority/crl.pem", house.keys / holder / "crl.pem")


def test_a_study_of_the_list_runs_is_prepared_and_is_answered_again(house):
    study = study_of("tables", *TWO)
    sign_in(house, study)
    scene = Scene(house, study)
    assert isinstance(house.run(house.prepare(study)), Preparation)
    house.run(house.end())
    for _ in range(2):
        result = scene.run()
        assert isinstance(result, Report), repr(result)
    trail = rows(Path(f"{house.nodes['north'].dataset.config.ledger}.audit"))
    notes = [row["note"] for row in trail if row["event"] == "proposal"]
    assert len(notes) == 3 and all("signed in as 'sub-1' of 'st-mary'" in note for note in notes)


OTHERS = {
    "another name": {"name": "age and crp, again"},
    "another epsilon": {"epsilon": "5"},
    "other nodes": {"nodes": NODES},
    "another statistic": {"kind": "mean"},
    "another protocol": {"kind": "vector"},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_study_that_differs_is_another_study(house, other):
    """Its holder writes the whole document, so the certificate has what no holder can choose."""
    listed = study_of("tables", *TWO)
    sign_in(house, listed)
    changes = {"name": listed.name, "kind": "tables", "nodes": TWO} | OTHERS[other]
    study = study_of(changes.pop("kind"), *changes.pop("nodes"), **changes)
    scene = Scene(house, study.replaced(name=changes["name"]) if other != "another name" else study)
    for attempt in (house.study, house.prepare):
        refused = house.run(attempt(scene.study))
        assert isinstance(refused, StudyError) and "may ask other studies" in refused.message
        assert scene.study.hash.hex() in refused.message, "what the keeper would have to list"
        house.run(house.end())
    assert set(scene.states.values()) == {"nothing"}
    with without(LISTED):
        assert isinstance(scene.run(), Report)


def giving_up(house: House, study: Study, name: str) -> None:
    """Propose a study to a node, and give it up before the node answers."""

    async def talk() -> None:
        stream: RpcStream = RpcStream(name, "connect", codec.decode_node, ahead=8)
        try:
            await stream.connect(house.coordinator, "node", PLACES[name], 10)
            stream.begin(node_stub(stream.channel).Study())
            await stream.write(codec.encode_coordinator(m.Propose(study.encode(), False)))
            await stream.write(codec.encode_coordinator(m.Abort("", "nobody has charged", False)))
            with suppress(UmpcError):
                while True:
                    await stream.next("propose", 20)
        finally:
            await stream.close()

    house.run(talk())
    house.run(house.end())


def test_a_held_study_of_another_list_stays_held(house):
    scene = Scene(house, study_of("tables", *TWO))

    def lose(said: Said) -> Iterable[bytes]:
        house.network.lose("coordinator")
        return []

    house.network.at("coordinator", "north", "release", lose)
    assert isinstance(scene.run(), PeerLost)
    assert set(scene.states.values()) == {"held"}
    house.mend()
    sign_in(house, study_of("mean", *TWO))
    for name in TWO:
        giving_up(house, scene.study, name)
    assert set(scene.states.values()) == {"held"}
    assert isinstance(scene.run(), StudyError)
    assert set(scene.states.values()) == {"held"}
    with without(LISTED):
        giving_up(house, scene.study, "south")
    assert scene.states == {"north": "held", "south": "nothing"}, "so much the check keeps"
    sign_in(house, scene.study)
    assert isinstance(scene.run(), Report)


def test_a_shuffler_gives_it_no_heap_of_another_study(house):
    study = study_of("shuffled", *TWO)
    request = pb.CollectRequest(study=study.encode(), attempt=bytes(32))

    async def collect() -> Any:
        stream: RpcStream = RpcStream("shuffler-1", "collect", lambda reply: reply, ahead=8)
        try:
            await stream.connect(house.coordinator, "shuffler", PLACES["shuffler-1"], 10)
            stream.begin(shuffler_stub(stream.channel).Collect(request))
            return await stream.next("collect", 20)
        finally:
            await stream.close()

    sign_in(house, study_of("mean", *TWO))
    with pytest.raises(StudyError, match="may ask other studies"):
        house.run(collect())
    sign_in(house, study)
    assert house.run(collect()).HasField("run"), "it waits for the nodes"


@pytest.mark.parametrize("moment", ["propose", "release"])
def test_a_certificate_that_is_revoked_meanwhile_ends_its_study_there(house, moment):
    scene = Scene(house, study_of("tables", *TWO))
    sign_in(house, scene.study)

    def revoked(said: Said) -> Iterable[bytes]:
        revoke(house, *TWO)
        return [said.data]

    house.network.at("coordinator", "north", moment, revoked)
    result = scene.run()
    assert isinstance(result, CertificateError) and "was revoked" in result.message, repr(result)
    assert set(scene.states.values()) == {"nothing" if moment == "propose" else "held"}
    house.mend()
    (house.keys / "coordinator/key.pem").unlink()
    sign_in(house, scene.study)
    assert isinstance(scene.run(), Report), "after another sign-in the work is not lost"
