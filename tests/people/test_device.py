"""A person's device: what it refuses, what it has on its disk when, and what leaves it."""

from __future__ import annotations

import asyncio
import re
import stat
from dataclasses import replace

import msgspec
import pytest

from tests.support.people import people_study, with_terms
from tests.support.people_doors import PLACES, TOKENS, Aggregator, Doors, aggregators
from umpc.crypto.signing import MemoryAuthority
from umpc.errors import (
    CertificateError,
    ConfigError,
    EncodingError,
    MessageRefused,
    NotNumeric,
    OutOfBounds,
    PeerLost,
    RemoteProtocolError,
    StudyError,
    UnknownField,
)
from umpc.people import messages
from umpc.people.device import (
    Device,
    DoorEntry,
    Respondent,
    answered_cells,
    check_invitation,
    in_batches,
    read_receipt,
)
from umpc.study.parts import FieldBins, FieldText
from umpc.transport.authority import Authority


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    return aggregators(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def doors(identities):
    return Doors(with_terms(people_study(), places=PLACES), identities)


@pytest.fixture
def invited(doors):
    return check_invitation(doors.invitation().encode())


def person(place, cell=5):
    return Respondent(place, TOKENS[place][0], cell)


def send(path, invited, doors, *people):
    device = Device(path, invited)
    try:
        asyncio.run(device.send(people, *doors.all))
        return device.refused, list(device.receipts())
    finally:
        device.close()


def test_both_aggregators_get_the_cell_and_the_person_both_receipts(tmp_path, doors, invited):
    refused, receipts = send(tmp_path / "device", invited, doors, person(3), person(9, 15))
    assert refused == {} and [each.place for each in receipts] == [3, 9]
    assert (doors.cell(3), doors.cell(9)) == (5, 15)
    for each in receipts:
        assert read_receipt(each.encode(), invited) == each
        assert each.row == messages.row(each.place, doors.opened[0][each.place].receipt)


def test_many_people_come_in_batches(tmp_path, doors, invited):
    people = [person(place, place % 16) for place in range(PLACES)]
    told = []
    device = Device(tmp_path / "device", invited)
    asyncio.run(device.send(people, *doors.all, told.append))
    assert told == [256, 512, 600]
    assert [len(each) for each in in_batches(range(PLACES))] == [256, 256, 88]
    assert all(doors.cell(place) == place % 16 for place in range(PLACES))


@pytest.mark.parametrize("down", [{0}, {1}, {0, 1}])
def test_after_a_cut_line_only_these_bytes_leave_again(tmp_path, doors, invited, down):
    doors.is_down = down
    with pytest.raises(PeerLost):
        send(tmp_path / "device", invited, doors, person(3))
    doors.is_down = set()
    # nobody says the value again: the device has the message
    _, receipts = send(tmp_path / "device", invited, doors)
    assert len(receipts) == 1
    for side in (0, 1):
        first, second = doors.boxes[side][3]
        assert first == second


class Crash(BaseException):
    """The device's process ends here."""


def test_boxes_are_on_disk_before_one_of_them_leaves(tmp_path, doors, invited):
    class Dying:
        async def submit(self, study, boxes):
            raise Crash

    device = Device(tmp_path / "device", invited)
    with pytest.raises(Crash):
        asyncio.run(device.send([person(3)], doors, [Dying(), Dying()]))
    device.close()

    class Silent:
        async def secrets(self, study, requests):
            raise AssertionError("a device that has its boxes needs no secret")

    again = Device(tmp_path / "device", invited)
    asyncio.run(again.send([], Silent(), doors.all[1]))
    again.close()
    assert doors.cell(3) == 5


def test_a_lost_secret_is_asked_for_by_the_same_device_key(tmp_path, doors, invited):
    class Mute:
        async def secrets(self, study, requests):
            await doors.secrets(study, requests)
            raise PeerLost("the line was cut")

    device = Device(tmp_path / "device", invited)
    with pytest.raises(PeerLost):
        asyncio.run(device.send([person(3)], Mute(), doors.all[1]))
    device.close()
    refused, receipts = send(tmp_path / "device", invited, doors)
    assert not refused and len(receipts) == 1


def test_another_value_for_a_place_is_refused_while_its_message_is_there(tmp_path, doors, invited):
    doors.is_down = {1}
    with pytest.raises(PeerLost):
        send(tmp_path / "device", invited, doors, person(3))
    with pytest.raises(MessageRefused, match=r"place 3 has answered with another value"):
        send(tmp_path / "device", invited, doors, person(3, 6))
    assert len(doors.boxes[0][3]) == 1, "nothing left"


def test_token_and_value_may_be_corrected_until_there_are_boxes(tmp_path, doors, invited):
    wrong = Respondent(3, TOKENS[4][0], 9)
    refused, _ = send(tmp_path / "device", invited, doors, wrong)
    assert "not signed by the key of this place" in refused[3].message
    refused, receipts = send(tmp_path / "device", invited, doors, person(3))
    assert not refused and len(receipts) == 1 and doors.cell(3) == 5


def test_a_place_that_is_done_makes_no_other_boxes(tmp_path, doors, invited):
    _, first = send(tmp_path / "device", invited, doors, person(3))
    again = Device(tmp_path / "device", invited)
    asyncio.run(again.send([person(3, 6)], *doors.all))
    assert again.sent == 0, "and so the command says"
    second = list(again.receipts())
    again.close()
    assert first == second and len(doors.boxes[0][3]) == 1 and doors.cell(3) == 5


def test_another_device_of_the_same_place_gets_no_secret(tmp_path, doors, invited):
    send(tmp_path / "device", invited, doors, person(3))
    refused, receipts = send(tmp_path / "other", invited, doors, person(3, 6), person(4))
    assert "another device" in refused[3].message and [each.place for each in receipts] == [4]
    assert doors.cell(3) == 5


def test_where_all_of_a_batch_are_refused_no_other_is_asked(tmp_path, doors, invited):
    wrong = [Respondent(place, TOKENS[-1][0], 1) for place in range(500)]
    with pytest.raises(MessageRefused, match="not signed by the key of this place"):
        send(tmp_path / "device", invited, doors, *wrong)
    assert len(doors.devices) == 0


def test_keys_cell_and_boxes_are_gone_when_both_receipts_are_there(tmp_path, doors, invited):
    path = tmp_path / "device"
    doors.is_down = {0}
    with pytest.raises(PeerLost):
        send(path, invited, doors, person(3))
    boxes = [doors.boxes[side][3][0] for side in (0, 1)]
    assert all(box in everything(tmp_path) for box in boxes), "the test could not fail"
    doors.is_down = set()
    send(path, invited, doors)
    left = everything(tmp_path)
    assert not any(secret in left for secret in (*boxes, TOKENS[3][0], doors.secrets_of[3]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def everything(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_one_process_at_a_time_uses_the_file(tmp_path, invited):
    device = Device(tmp_path / "device", invited)
    with pytest.raises(ConfigError, match="end the other process"):
        Device(tmp_path / "device", invited)
    device.close()
    (tmp_path / "text").write_text("This is no database, but a text that somebody wrote.")
    with pytest.raises(ConfigError, match="cannot be used"):
        Device(tmp_path / "text", invited)


def test_the_file_belongs_to_one_study(tmp_path, doors, invited, identities):
    send(tmp_path / "device", invited, doors, person(3))
    others = Doors(with_terms(people_study(name="other"), places=PLACES), identities)
    other = check_invitation(others.invitation().encode())
    for _ in range(2):
        with pytest.raises(ConfigError, match="of another study"):
            Device(tmp_path / "device", other)
    assert len(send(tmp_path / "device", invited, doors)[1]) == 1


def test_a_receipt_that_an_aggregator_did_not_sign_is_none(tmp_path, doors, invited, identities):
    class Liar(Aggregator):
        async def submit(self, study, boxes):
            return [each[:32] + bytes(64) for each in await super().submit(study, boxes)]

    device = Device(tmp_path / "device", invited)
    with pytest.raises(RemoteProtocolError, match="no valid receipt for place 3") as caught:
        asyncio.run(device.send([person(3)], doors, [Aggregator(doors, 0), Liar(doors, 1)]))
    assert caught.value.culprit == "node-1" and list(device.receipts()) == []
    device.close()


def test_a_receipt_is_read_with_its_own_invitation_only(tmp_path, doors, invited, identities):
    _, (receipt,) = send(tmp_path / "device", invited, doors, person(3))
    other = Doors(with_terms(people_study(name="other"), places=PLACES), identities)
    with pytest.raises(MessageRefused, match="node-0 has not signed this receipt of place 3"):
        read_receipt(receipt.encode(), check_invitation(other.invitation().encode()))
    moved = msgspec.structs.replace(receipt, place=4)
    with pytest.raises(MessageRefused, match="of place 4"):
        read_receipt(moved.encode(), invited)
    with pytest.raises(EncodingError, match="a receipt was expected"):
        read_receipt("{}", invited)


# --- invitations ----------------------------------------------------------------------------------


def refused(invitation, error, words):
    with pytest.raises(error, match=re.escape(words)):
        check_invitation(invitation.encode())


def test_an_invitation_that_is_none(doors):
    for data in (b"", b"{}", b"\xff", b"[" * 10_000, b'{"study": 1}'):
        with pytest.raises(EncodingError, match="an invitation was expected"):
            check_invitation(data)
    counted = with_terms(doors.study, counted="00" * 168)
    with pytest.raises(StudyError):
        check_invitation(doors.invitation(study=counted.encode().decode()).encode())


def test_an_invitation_with_another_key_for_boxes(doors):
    first, second = doors.invitation().aggregators
    false = msgspec.structs.replace(second, box_key=bytes(32))
    wrong = doors.invitation(aggregators=(first, false))
    refused(wrong, RemoteProtocolError, "node-1 has not signed this study")
    swapped = [
        msgspec.structs.replace(one, box_key=other.box_key, signature=other.signature)
        for one, other in ((first, second), (second, first))
    ]
    refused(doors.invitation(aggregators=tuple(swapped)), RemoteProtocolError, "node-0")


def test_an_invitation_to_a_study_that_nobody_opened(doors):
    other = with_terms(doors.study, fewest=3)
    wrong = doors.invitation(study=other.encode().decode())
    refused(wrong, RemoteProtocolError, "node-0 has not signed this study")


def test_an_invitation_with_other_names_or_certificates(doors, tmp_path):
    first, second = doors.invitation().aggregators
    refused(doors.invitation(aggregators=(second, first)), StudyError, "other names")
    refused(doors.invitation(dealer=DoorEntry("other", "here:1")), StudyError, "other names")
    shown = msgspec.structs.replace(second, certificate=first.certificate)
    wrong = doors.invitation(aggregators=(first, shown))
    refused(wrong, CertificateError, "certificates of node 'node-0' and node 'node-0'")
    stranger = Authority.create(tmp_path / "ca").ca_pem.decode()
    refused(doors.invitation(ca=stranger), CertificateError, "was not signed by our authority")
    none = msgspec.structs.replace(
        first, certificate=MemoryAuthority("x").credentials("node-0").certificate
    )
    refused(doors.invitation(aggregators=(none, second)), CertificateError, "certificate")


# --- values ---------------------------------------------------------------------------------------


@pytest.fixture
def survey():
    """Bins of a number, and a category."""
    fields = (
        FieldText("x", "0", "10", "0.5"),
        FieldText.of_categories("y", ("yes", "no", "maybe")),
    )
    kernel = "((a.x < b.x) + (b.x < a.x)) * (a.y == b.y)"
    return people_study(kernel, fields=fields, bins=(FieldBins("x", cuts=("2", "5")),))


def test_a_cell_is_that_of_the_studys_grid(survey):
    rows = [{"x": x, "y": y} for y in ("yes", "no", "maybe") for x in ("0", "4.5", "1e1")]
    found = answered_cells(survey, rows)
    assert sorted(found) == list(range(9)), "three bins and three categories"
    assert answered_cells(survey, [{"x": " 5.0 ", "y": "no "}]) == [found[5]]
    assert answered_cells(survey, [{"x": "1.5", "y": "yes"}]) == [found[0]]


@pytest.mark.parametrize(
    ("x", "y", "error", "words"),
    [
        ("0.25", "no", OutOfBounds, "field 'x': a multiple of 1/2 was expected"),
        ("10.5", "no", OutOfBounds, "field 'x': a number from 0 to 10 was expected"),
        ("-0.5", "no", OutOfBounds, "field 'x': a number from 0 to 10"),
        ("inf", "no", NotNumeric, "field 'x': a number"),
        ("1e999999999", "no", NotNumeric, "field 'x': a number"),
        ("1e-999999999", "no", NotNumeric, "field 'x': a number"),
        ("1/2", "no", NotNumeric, "field 'x': a number"),
        ("1_0", "no", NotNumeric, "field 'x': a number"),
        ("", "no", NotNumeric, "field 'x': a number"),
        ("nan", "no", NotNumeric, "field 'x': a number"),
        ("1", "nein", OutOfBounds, "field 'y': one of 'yes', 'no', 'maybe' was expected"),
        ("1", "", OutOfBounds, "field 'y': one of"),
    ],
)
def test_a_value_that_the_study_does_not_take_is_refused(survey, x, y, error, words):
    with pytest.raises(error, match=re.escape(words)) as caught:
        answered_cells(survey, [{"x": x, "y": y}])
    assert "\n" not in caught.value.message and "999999" not in caught.value.message


@pytest.mark.parametrize("answer", [{}, {"x": "1"}, {"x": "1", "y": "no", "z": "2"}])
def test_each_field_has_one_value(survey, answer):
    with pytest.raises(UnknownField, match="one value for each of x, y was expected"):
        answered_cells(survey, [answer])


def test_no_repr_shows_a_value_or_a_key(invited):
    shown = repr(replace(person(3), cell=14))
    assert "14" not in shown and TOKENS[3][0].hex()[:8] not in shown and "place=3" in shown
