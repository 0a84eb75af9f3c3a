"""The disk of an aggregator of people: nothing that left is lost, and nobody counts twice."""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.support.crowds import (
    AUTHORITY,
    CLOSES,
    KEYS,
    NAMES,
    OPENS,
    Clock,
    Crowd,
    Pair,
    counted_study,
    opened,
    store_at,
)
from umpc.compute.executor import Executor
from umpc.crypto.signing import ORDER, is_signature
from umpc.errors import (
    LedgerError,
    MessageRefused,
    RemoteProtocolError,
    StudyError,
    TooFewRecords,
)
from umpc.node import people_store
from umpc.node.people_server import adding_place
from umpc.node.people_store import PeopleStore
from umpc.people import messages
from umpc.testing import limited, lying


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pair(tmp_path: Path, clock: Clock) -> Iterator[Pair]:
    found = Pair(tmp_path, Crowd("three of five", 5), clock).open()
    yield found
    found.stop()


LOGS = (".sqlite-shm", ".sqlite-wal")


def bytes_on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


# --- the whole way


def test_blocks_of_keys_may_be_added_up_elsewhere(pair: Pair):
    for place, cell in enumerate([3, 7, 3, 15]):
        pair.send(place, cell)
    pair.clock.now = CLOSES
    pair.close()
    went: list[int] = []

    async def add_up() -> list[int]:
        class Elsewhere(Executor):
            at_once = 2

            async def run(self, function, *arguments, **named):
                told = pickle.dumps((function, arguments))  # to another machine
                went.append(len(told))
                theirs, given = pickle.loads(told)
                return theirs(*given)

        return await asyncio.to_thread(pair.add_up, adding_place(Elsewhere()))

    assert asyncio.run(add_up()) == np.bincount([3, 7, 3, 15], minlength=16).tolist()
    assert len(went) == 2, "one block at each aggregator"


def test_shares_of_two_stores_add_up_to_the_histogram_of_those_who_told_both(pair: Pair):
    for place, cell in enumerate([3, 7, 3, 15]):
        pair.send(place, cell)
    pair.send(4, 9, sides=(0,))
    pair.clock.now = CLOSES
    pair.close()
    expected = np.bincount([3, 7, 3, 15], minlength=16).tolist()
    assert pair.add_up() == expected
    pair.restart()
    assert pair.add_up() == expected, "all of it may be repeated"
    listed = [b"".join(store.counted(pair.crowd.hash)) for store in pair.stores]
    assert listed[0] == listed[1] and len(listed[0]) == 4 * messages.ROW_BYTES


def test_two_studies_of_one_store_do_not_touch_each_other(pair: Pair):
    first, first_keys = pair.crowd, pair.keys
    second = Crowd("the other one", 6)
    pair.crowd = second
    pair.open()
    second_keys = pair.keys
    for place in range(5):
        pair.crowd, pair.keys = first, first_keys
        pair.send(place, 1)
        pair.crowd, pair.keys = second, second_keys
        pair.send(place, 2)
    pair.clock.now = CLOSES
    for crowd, expected in ((first, 1), (second, 2)):
        pair.crowd = crowd
        pair.close()
        assert pair.add_up()[expected] == 5
        for store in pair.stores:
            store.forget_share(crowd.hash)


def test_one_share_is_not_the_histogram(pair: Pair):
    for place in range(5):
        pair.send(place, 3)
    pair.close()
    signed = pair.count()
    signatures = [signature for _, signature in signed]
    store = pair.stores[0]
    store.add_up(pair.crowd.hash, signed[0][0], KEYS, signatures, lambda done, of: None)
    share, _ = store.share(counted_study(pair.crowd, signed[0][0], signatures))
    # a cell's share is below 2^40 with probability 2^-24
    assert (share > 1 << 40).all()


def test_many_places_are_added_up_block_by_block_and_the_progress_is_told(tmp_path, clock, limit):
    limit(people_store, BLOCKS_AT_ONCE=1, ROWS_AT_ONCE=3)
    count = messages.PLACES_AT_ONCE + 8
    pair = Pair(tmp_path, Crowd("two blocks", count), clock).open()
    chosen = [0, 5, 4095, 4096, 4103]
    for place in chosen:
        pair.send(place, place % 16)
    clock.now = CLOSES
    pair.close()
    assert pair.add_up() == np.bincount(np.array(chosen) % 16, minlength=16).tolist()
    pair.stop()


# --- one number a place


def test_a_receipt_is_signed_by_the_aggregator(pair: Pair):
    crowd = pair.crowd
    for side, told in enumerate(pair.send(2, 7)):
        statement = messages.receipt_statement(crowd.survey, side, 2, told[:32])
        assert len(told) == 96 and is_signature(KEYS[side], statement, told[32:])


def test_the_same_message_again_gets_the_same_receipt_after_a_restart_and_late(pair: Pair):
    first = pair.send(1, 7)
    pair.restart()
    again = pair.send(1, 7)
    pair.clock.now = CLOSES + 5
    late = pair.send(1, 7)
    assert (
        [each[:32] for each in first]
        == [each[:32] for each in again]
        == [each[:32] for each in late]
    )
    assert len(b"".join(pair_rows(pair, 0))) == messages.ROW_BYTES


def pair_rows(pair: Pair, side: int) -> list[bytes]:
    pair.clock.now = CLOSES
    pair.stores[side].close_study(pair.crowd.hash)
    return list(pair.stores[side].rows(pair.crowd.hash))


@pytest.mark.parametrize("restarts", [False, True])
def test_a_second_number_of_a_place_is_refused_and_the_first_one_stands(pair: Pair, restarts: bool):
    first = pair.send(1, 7)
    if restarts:
        pair.restart()
    for refused in pair.send(1, 8):
        assert isinstance(refused, MessageRefused) and "another message before" in str(refused)
    assert [each[:32] for each in pair.send(1, 7)] == [each[:32] for each in first]


def test_two_numbers_of_a_place_in_one_call_are_one_vote(pair: Pair):
    boxes = [pair.crowd.boxes(pair.keys, 1, [number, number])[0] for number in (3, 4)]
    one, other = pair.stores[0].submit(pair.crowd.hash, [(1, box) for box in boxes])
    assert isinstance(one, bytes) and isinstance(other, MessageRefused)


def test_a_person_that_tells_the_aggregators_two_numbers_is_not_counted(pair: Pair):
    boxes = pair.crowd.boxes(pair.keys, 4, [3, 4])
    for store, box in zip(pair.stores, boxes, strict=True):
        assert isinstance(store.submit(pair.crowd.hash, [(4, box)])[0], bytes)
    for place in range(3):
        pair.send(place, 5)
    pair.clock.now = CLOSES
    pair.close()
    assert sum(pair.add_up()) == 3


# --- messages that are not taken


def refusal(store: PeopleStore, crowd: Crowd, place: int, box: bytes) -> str:
    (found,) = store.submit(crowd.hash, [(place, box)])
    assert isinstance(found, MessageRefused)
    return str(found)


def test_a_message_of_another_study_aggregator_or_place_does_not_open(pair: Pair):
    crowd, other = pair.crowd, Crowd("another study", 5)
    boxes = crowd.boxes(pair.keys, 1, [3, 3])
    assert "does not open" in refusal(pair.stores[0], crowd, 1, boxes[1])
    assert "does not open" in refusal(pair.stores[0], crowd, 2, boxes[0])
    opened(pair.stores[0], other, 0)
    assert "does not open" in refusal(pair.stores[0], other, 1, boxes[0])
    foreign = other.boxes(pair.keys, 1, [3, 3])
    assert "does not open" in refusal(pair.stores[0], crowd, 1, foreign[0])


def test_a_message_that_another_place_signed_is_refused(pair: Pair):
    crowd = pair.crowd
    crowd.signing_seeds[1], own = crowd.signing_seeds[2], crowd.signing_seeds[1]
    (box, _) = crowd.boxes(pair.keys, 1, [3, 3])
    crowd.signing_seeds[1] = own
    assert "not signed by the key of this place" in refusal(pair.stores[0], crowd, 1, box)


@pytest.mark.parametrize("place", [-1, 5, 1 << 63])
def test_a_place_that_the_study_does_not_have_is_refused(pair: Pair, place: int):
    assert "5 places" in refusal(pair.stores[0], pair.crowd, place, bytes(messages.BOX_BYTES))


def test_one_refused_message_refuses_no_other_one_of_the_call(pair: Pair):
    crowd = pair.crowd
    box = crowd.boxes(pair.keys, 1, [3, 3])[0]
    found = pair.stores[0].submit(crowd.hash, [(0, box), (1, box), (9, box)])
    assert [isinstance(each, bytes) for each in found] == [False, True, False]


@pytest.mark.parametrize("at", [OPENS - 1, CLOSES, CLOSES + 1])
def test_a_message_outside_the_studys_time_is_refused(pair: Pair, at: float):
    pair.clock.now = at
    for refused in pair.send(1, 7):
        assert "from 2027-01-15T08:00:00+00:00 to 2027-01-16" in str(refused)


def test_no_message_is_taken_once_the_study_is_closed_whatever_the_clock_says(pair: Pair):
    pair.send(1, 7)
    pair.clock.now = CLOSES
    pair.close()
    pair.clock.now = OPENS
    for restarts in (False, True):
        if restarts:
            pair.restart()
        with pytest.raises(MessageRefused, match="closed or unknown here"):
            pair.send(2, 7)


def test_an_unknown_study_is_refused(pair: Pair):
    with pytest.raises(MessageRefused, match="closed or unknown here"):
        pair.stores[0].submit(bytes(32), [(1, b"")])
    with pytest.raises(MessageRefused, match="does not know it"):
        pair.stores[0].counted(bytes(32))
    with pytest.raises(StudyError, match="does not know this study"):
        pair.stores[0].rows(bytes(32))


# --- accounts


def enrolled(label: str, count: int = 2) -> Crowd:
    devices = [bytes([each]) * 32 for each in range(count)]
    return Crowd(label, count, seeds=devices, enrolled=True)


def test_an_enrolment_pays_for_each_study_once_up_to_its_cap(tmp_path: Path, clock: Clock):
    pair = Pair(tmp_path, enrolled("first"), clock, cap=Fraction(5, 2)).open()
    first = pair.crowd
    for _ in range(3):  # again costs nothing
        assert all(isinstance(each, bytes) for each in pair.send(0, 3))
    pair.restart()
    outcomes = []
    for label in ("second", "third"):
        pair.crowd = enrolled(label)
        pair.keys = [opened(store, pair.crowd, side) for side, store in enumerate(pair.stores)]
        outcomes.append(pair.send(0, 3))
    assert all(isinstance(each, bytes) for each in outcomes[0])
    for refused in outcomes[1]:
        assert "epsilon 1/2 left of 5/2" in str(refused), "the third study was not paid"
    assert all(isinstance(each, bytes) for each in pair.send(1, 3)), "another account is untouched"
    pair.crowd = first
    pair.stop()


def test_a_token_has_no_account(tmp_path: Path, clock: Clock):
    pair = Pair(tmp_path, Crowd("tokens", 2), clock, cap=Fraction(0)).open()
    assert all(isinstance(each, bytes) for each in pair.send(0, 3))
    pair.stop()


# --- open


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[PeopleStore]:
    found = store_at(tmp_path / "one", 0, clock)
    yield found
    found.close()


def test_a_list_of_places_that_is_not_the_studys_is_refused_and_leaves_nothing(
    store: PeopleStore, tmp_path: Path
):
    crowd = Crowd("list", 4)
    cut = [*crowd.place_keys[:3], crowd.place_keys[3][:-1]]
    for keys in (cut, cut[:3], crowd.place_keys[::-1], [*crowd.place_keys, bytes(32)]):
        with pytest.raises(StudyError, match="not the study's"):
            store.open_study(crowd.study, keys)
    assert not list((tmp_path / "one").glob("*.new")) and not list(
        (tmp_path / "one").glob("*.places")
    )
    with pytest.raises(StudyError, match="does not know"):
        store.keys_so_far(crowd.hash)


def test_a_study_is_opened_before_it_closes_and_once(store: PeopleStore, clock: Clock):
    crowd = Crowd("late", 4)
    clock.now = CLOSES
    with pytest.raises(StudyError, match="closed at 2027-01-16T08:00:00Z"):
        store.open_study(crowd.study, crowd.place_keys)
    clock.now = OPENS - 10
    key = opened(store, crowd, 0)
    again = iter(crowd.place_keys)
    store.open_study(crowd.study, again)
    assert next(again, None) is None, "a stream is read to its end"
    store.open_study(crowd.study, ())
    assert store.opened(crowd.hash)[0] == key


def test_the_box_key_leaves_only_when_all_keys_are_there_and_is_signed(store: PeopleStore):
    crowd = Crowd("keys", messages.PLACES_AT_ONCE + 1)
    store.open_study(crowd.study, crowd.place_keys)
    first, last = crowd.blocks()
    with pytest.raises(RemoteProtocolError, match="before its seed"):
        store.take_keys(crowd.hash, first)
    store.take_seed(crowd.hash, crowd.seeds[0])
    store.take_keys(crowd.hash, first)
    with pytest.raises(StudyError, match="waits for the dealer's keys"):
        store.opened(crowd.hash)
    with pytest.raises(StudyError, match="another call"):  # which is behind this one
        store.take_keys(crowd.hash, first, 0)
    store.take_keys(crowd.hash, last, len(first))
    key, signature = store.opened(crowd.hash)
    assert is_signature(KEYS[0], messages.opened_statement(crowd.survey, 0, key), signature)


def test_keys_come_in_any_parts_and_no_more_than_the_study_has(store: PeopleStore):
    crowd = Crowd("blocks", messages.PLACES_AT_ONCE + 2)
    store.open_study(crowd.study, crowd.place_keys)
    store.take_seed(crowd.hash, crowd.seeds[0])
    first, last = crowd.blocks()
    whole = first + last
    for part in (whole[:1], whole[1:1000], whole[1000 : len(first) + 9]):
        store.take_keys(crowd.hash, part)
        so_far = store.keys_so_far(crowd.hash)
        with pytest.raises(RemoteProtocolError, match="more keys than") as caught:
            store.take_keys(crowd.hash, whole[so_far:] + bytes(1))
        assert caught.value.culprit == "dealer" and store.keys_so_far(crowd.hash) == so_far
    store.take_keys(crowd.hash, whole[len(first) + 9 :])
    assert store.keys_so_far(crowd.hash) == len(whole)
    assert store.opened(crowd.hash)


def test_a_block_that_a_crash_cut_off_comes_again(tmp_path: Path, clock: Clock):
    pair = Pair(tmp_path / "pair", Crowd("torn", messages.PLACES_AT_ONCE + 2), clock).open()
    crowd, folder = pair.crowd, tmp_path / "torn"
    store = store_at(folder, 0, clock)
    store.open_study(crowd.study, crowd.place_keys)
    store.take_seed(crowd.hash, crowd.seeds[0])
    first, _ = crowd.blocks()
    store.take_keys(crowd.hash, first)
    store.close()
    (file,) = folder.glob("*.dealt")
    file.write_bytes(first + bytes(100))
    store = store_at(folder, 0, clock)
    assert store.keys_so_far(crowd.hash) == len(first)
    key = opened(store, crowd, 0)
    assert file.read_bytes() == b"".join(crowd.blocks())
    pair.stores[0].close()
    pair.stores[0], pair.keys[0] = store, key
    for place in (0, 4097):
        pair.send(place, 9)
    clock.now = CLOSES
    pair.close()
    assert pair.add_up()[9] == 2
    pair.stop()


def test_another_seed_or_keys_after_the_last_are_refused(store: PeopleStore):
    crowd = Crowd("seed", 4)
    store.open_study(crowd.study, crowd.place_keys)
    with pytest.raises(RemoteProtocolError, match="dealt once"):
        store.take_seed(crowd.hash, bytes(31))
    opened(store, crowd, 0)
    store.take_seed(crowd.hash, crowd.seeds[0])
    with pytest.raises(RemoteProtocolError, match="dealt once"):
        store.take_seed(crowd.hash, crowd.seeds[1])
    with pytest.raises(StudyError, match="is open"):
        store.take_keys(crowd.hash, next(crowd.blocks()))


def test_a_second_store_of_the_folder_is_refused(store: PeopleStore, tmp_path: Path, clock: Clock):
    with pytest.raises(LedgerError, match=r"store of people .*one user was expected"):
        store_at(tmp_path / "one", 0, clock)


def test_only_the_owner_reads_the_folder_and_its_repr_says_nothing(store: PeopleStore, tmp_path):
    assert (tmp_path / "one").stat().st_mode & 0o77 == 0
    assert repr(store) == "PeopleStore('node-0', <redacted>)"


def test_a_disk_that_refuses_is_a_ledger_error(tmp_path: Path, clock: Clock):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(LedgerError, match="cannot be read or written") as caught:
        store_at(tmp_path / "file", 0, clock)
    assert str(tmp_path) not in str(caught.value) and str(tmp_path) in caught.value.detail


def test_a_file_that_is_busy_takes_no_message_and_later_the_same_one(pair: Pair):
    with closing(sqlite3.connect(pair.folder / NAMES[0] / "people.sqlite")) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="cannot be read or written"):
            pair.send(1, 3, sides=(0,))
    assert all(isinstance(each, bytes) for each in pair.send(1, 3))


# --- close and count


def test_a_study_closes_at_its_time_or_when_all_places_have_sent(pair: Pair):
    for place in range(4):
        pair.send(place, place)
    with pytest.raises(StudyError, match=r"2027-01-16T08:00:00.* all 5 places have sent .* 4 have"):
        pair.stores[0].close_study(pair.crowd.hash)
    with pytest.raises(StudyError, match="is closed was expected, and this one is open"):
        pair.stores[0].rows(pair.crowd.hash)
    pair.send(4, 0)
    pair.close()
    pair.close()
    assert pair.add_up() == [2, 1, 1, 1, *[0] * 12]


def test_a_list_is_signed_once(pair: Pair):
    for place in range(5):
        pair.send(place, 5)
    pair.close()
    h, (one, other) = pair.crowd.hash, pair.stores
    rows = b"".join(other.rows(h))
    first = one.count(h, [rows[: 3 * messages.ROW_BYTES]], "node-1")
    assert one.count(h, [rows], "node-1") == first, "the rows that were left out are gone"
    pair.restart()
    one = pair.stores[0]
    with pytest.raises(StudyError, match="has signed another list"):
        one.count(h, [rows[: 2 * messages.ROW_BYTES]], "node-1")
    text = messages.counted_text(pair.crowd.survey, first[0])
    assert is_signature(KEYS[0], text, first[1])
    assert len(b"".join(one.rows(h))) == 3 * messages.ROW_BYTES


def test_aggregators_with_different_keys_sign_different_lists(tmp_path: Path, clock: Clock):
    pair = Pair(tmp_path, Crowd("other keys", 3), clock)
    one, other = pair.stores
    pair.keys = [opened(one, pair.crowd, 0), b""]
    other.open_study(pair.crowd.study, pair.crowd.place_keys)
    other.take_seed(pair.crowd.hash, pair.crowd.seeds[1])
    (block,) = pair.crowd.blocks()
    other.take_keys(pair.crowd.hash, block[:-1] + bytes([block[-1] ^ 1]))
    pair.keys[1], _ = other.opened(pair.crowd.hash)
    for place in range(3):
        pair.send(place, 1)
    pair.close()
    statements = [statement for statement, _ in pair.count()]
    assert statements[0] != statements[1]
    pair.stop()


def test_a_list_that_does_not_ascend_is_refused(pair: Pair):
    pair.send(0, 1)
    pair.send(1, 1)
    pair.clock.now = CLOSES
    pair.close()
    rows = b"".join(pair.stores[1].rows(pair.crowd.hash))
    for wrong in (rows + rows[-40:], rows[40:] + rows[:40], rows[:-1]):
        with pytest.raises(RemoteProtocolError, match="do not ascend") as caught:
            pair.stores[0].count(pair.crowd.hash, [wrong], "node-1")
        assert caught.value.culprit == "node-1"


@pytest.mark.parametrize("fewest, came", [(2, 1), (4, 3)])
def test_too_few_people_give_no_result(tmp_path: Path, clock: Clock, fewest: int, came: int):
    pair = Pair(tmp_path, Crowd("few", 6, fewest=fewest), clock).open()
    for place in range(came):
        pair.send(place, 5)
    pair.send(5, 5, sides=(0,))
    clock.now = CLOSES
    pair.close()
    with pytest.raises(TooFewRecords, match=rf"{came} people .* at least {fewest}"):
        pair.count()
    clock.now = CLOSES + people_store.KEPT_SECONDS + 1
    pair.restart()
    with pytest.raises(StudyError, match="does not know"):
        pair.stores[0].rows(pair.crowd.hash)
    assert [path.name for path in sorted((tmp_path / "node-0").iterdir())] == [
        *("people.sqlite", "people.sqlite-shm", "people.sqlite-wal", "people.sqlite.lock")
    ]
    pair.stop()


# --- the share


def test_nothing_is_added_up_that_not_both_have_signed(pair: Pair):
    for place in range(5):
        pair.send(place, 5)
    pair.close()
    h, signed = pair.crowd.hash, pair.count()
    statement, signatures = signed[0][0], [signature for _, signature in signed]
    study = counted_study(pair.crowd, statement, signatures)
    store = pair.stores[0]
    for wrong in (signatures[::-1], [signatures[0], bytes(64)]):
        with pytest.raises(RemoteProtocolError, match="not both aggregators have signed"):
            store.add_up(h, statement, KEYS, wrong, lambda done, of: None)
    text = messages.counted_text(pair.crowd.survey, statement[::-1])
    forged = [AUTHORITY.credentials(name).sign(text) for name in NAMES]
    with pytest.raises(RemoteProtocolError, match="another list of people than node-0 has signed"):
        store.add_up(h, statement[::-1], KEYS, forged, lambda done, of: None)
    with pytest.raises(StudyError, match="is added up was expected, and this one is counted"):
        store.share(study)


def test_whoever_asks_who_is_counted_loads_no_share(tmp_path: Path, clock: Clock):
    pair = Pair(tmp_path, Crowd("wide", 3, 255), clock).open()
    for place in range(3):
        pair.send(place, 5)
    pair.close()
    pair.add_up()
    tracemalloc.start()
    try:
        assert len(next(pair.stores[0].counted(pair.crowd.hash))) == 3 * messages.ROW_BYTES
        assert tracemalloc.get_traced_memory()[1] < 8 * pair.crowd.survey.cells
    finally:
        tracemalloc.stop()
    pair.stop()


def added_up(pair: Pair) -> tuple[bytes, list[bytes]]:
    """All five people have sent and are added up. Returns: what both signed, and how."""
    for place in range(5):
        pair.send(place, 5)
    pair.close()
    pair.add_up()
    (statement, first), (_, second) = pair.count()
    return statement, [first, second]


def test_a_share_is_for_the_study_that_was_counted(pair: Pair):
    statement, signatures = added_up(pair)
    lies = [
        (bytes(messages.STATEMENT_BYTES), signatures),
        (statement, signatures[::-1]),
        (statement, [bytes(64), signatures[1]]),
    ]
    for lie in lies:
        with pytest.raises(StudyError, match="another list of people"):
            pair.stores[0].share(counted_study(pair.crowd, *lie))
    with pytest.raises(StudyError, match="another list of people"):
        pair.stores[0].share(pair.crowd.study)


def test_one_list_is_one_study_however_its_signatures_are_written(pair: Pair):
    """Whoever has an ECDSA signature (r, s) can write (r, −s), which fits too; a liar signs again.

    Otherwise there would be several studies of one list, with a release each.
    """
    statement, signatures = added_up(pair)
    others = [
        each[:32] + (ORDER - int.from_bytes(each[32:], "big")).to_bytes(32, "big")
        for each in signatures
    ]
    survey = pair.crowd.survey
    text = messages.counted_text(survey, statement)
    again = [AUTHORITY.credentials(name).sign(text) for name in NAMES]
    spelled = [*zip(signatures, others, again, strict=True)]
    hashes, taken = set(), [[], []]
    for both in product(*spelled):
        assert messages.check_counted(survey, statement, KEYS, both, "coordinator") == 5
        study = counted_study(pair.crowd, statement, both)
        hashes.add(study.hash)
        # the other aggregator and the coordinator may lie: each has to refuse by itself
        for store, found in zip(pair.stores, taken, strict=True):
            with suppress(StudyError):
                store.share(study)
                found.append([*both])
    assert len(hashes) == 9 and taken == [[signatures], [signatures]]


def stored(pair: Pair, query: str) -> list:
    """Values in a table of the first aggregator's file."""
    with closing(sqlite3.connect(pair.folder / NAMES[0] / "people.sqlite")) as db:
        return [value for (value,) in db.execute(query)]


def test_the_box_secret_is_forgotten_at_closing_and_numbers_with_the_sum(pair: Pair):
    numbers = "SELECT number FROM rows ORDER BY place"
    for place in range(5):
        pair.send(place, 5, sides=(0, 1) if place else (0,))
    (secret,) = stored(pair, "SELECT box_secret FROM studies")
    assert len(secret) == 32 and secret in bytes_on_disk(pair.folder / NAMES[0])
    pair.clock.now = CLOSES
    pair.close()
    assert secret not in bytes_on_disk(pair.folder / NAMES[0])
    pair.count()
    assert stored(pair, numbers) == [pair.crowd.number(place, 5) for place in range(1, 5)]
    pair.add_up()
    assert stored(pair, numbers) == [None] * 4


def test_what_was_added_up_is_forgotten_and_the_share_after_the_release(pair: Pair):
    crowd, folder = pair.crowd, pair.folder / NAMES[0]
    for place in range(5):
        pair.send(place, 5)
    kept = bytes_on_disk(folder)
    dealt = b"".join(crowd.blocks())
    assert crowd.seeds[0] in kept and dealt in kept
    pair.close()
    pair.add_up()
    signed = pair.count()
    study = counted_study(crowd, signed[0][0], [signature for _, signature in signed])
    share, _ = pair.stores[0].share(study)
    assert share.tobytes() in bytes_on_disk(folder)
    for gone in (crowd.seeds[0], dealt[:16], dealt[-16:]):
        assert gone not in bytes_on_disk(folder)
    pair.stores[0].forget_share(crowd.hash)
    assert share.tobytes()[:32] not in bytes_on_disk(folder)
    with pytest.raises(StudyError, match="this one ended"):
        pair.stores[0].share(study)
    assert pair.count() == signed, "a study that was released may be repeated"
    assert len(b"".join(pair.stores[0].counted(crowd.hash))) == 5 * messages.ROW_BYTES


LATE = CLOSES + people_store.KEPT_SECONDS + 1


def test_what_comes_30_days_after_closing_is_refused_by_name(pair: Pair, clock: Clock):
    for place in range(5):
        pair.send(place, 1)
    pair.close()
    store, theirs = pair.stores[0], list(pair.stores[1].rows(pair.crowd.hash))
    clock.now = LATE
    with pytest.raises(StudyError, match="30 days after the closing time, which was 2027-01-16"):
        store.count(pair.crowd.hash, theirs, NAMES[1])
    clock.now = CLOSES
    signed = pair.count()
    clock.now = LATE
    given = pair.crowd.hash, signed[0][0], KEYS, [each for _, each in signed]
    with pytest.raises(StudyError, match="30 days after the closing time, which was 2027-01-16"):
        store.add_up(*given, lambda done, of: None)
    for each in pair.stores:
        each.sweep()
    assert pair.count() == signed, "the list stays"


def test_a_swept_study_is_not_called_unknown_only(pair: Pair, clock: Clock):
    clock.now = LATE
    pair.stores[0].sweep()
    with pytest.raises(StudyError, match="or has forgotten it 30 days"):
        pair.stores[0].close_study(pair.crowd.hash)


def test_a_sweep_waits_until_a_share_is_added_up(pair: Pair, clock: Clock):
    for place in range(5):
        pair.send(place, 1)
    pair.close()
    signed, store = pair.count(), pair.stores[0]

    def tell(done: int, of: int) -> None:
        clock.now = LATE
        store.sweep()

    statement, signatures = signed[0][0], [each for _, each in signed]
    store.add_up(pair.crowd.hash, statement, KEYS, signatures, tell)
    study = counted_study(pair.crowd, statement, signatures)
    assert store.share(study)[1] == 5
    store.sweep()
    with pytest.raises(StudyError, match="this one ended"):
        store.share(study)


def test_people_of_other_studies_send_while_the_last_keys_are_hashed(pair: Pair):
    other, store = Crowd("hashed meanwhile", 3), pair.stores[0]
    number = pair.crowd.number(2, 1)
    box, _ = pair.crowd.boxes(pair.keys, 2, [number, number])
    with ThreadPoolExecutor(1) as threads:

        def hashed(honest, *given):
            taken = threads.submit(store.submit, pair.crowd.hash, [(2, box)])
            received.append(taken.result(10)[0])
            return honest(*given)

        received: list[bytes] = []
        with lying("node", file_digest=hashed):
            opened(store, other, 0)
    assert [len(each) for each in received] == [96]


@pytest.mark.parametrize("moment", ["0000-01-01T00:00:00Z", "2027-13-01T00:00:00Z"])
def test_a_moment_that_no_clock_shows_is_refused(store: PeopleStore, moment: str):
    crowd = Crowd("year 0", 3, opens=moment)
    with pytest.raises(StudyError, match="a moment in UTC"):
        store.open_study(crowd.study, crowd.place_keys)


# --- where aggregators may lie --------------------------------------------------------------------

ALPHA = 0xFEDCBA9876543210


@pytest.fixture
def checked(tmp_path: Path, clock: Clock) -> Iterator[Pair]:
    """Two aggregators with shares of h and of α·h, and the study that counts."""
    found = Pair(tmp_path, Crowd("checked", 5, alpha=ALPHA), clock).open()
    for place, cell in enumerate((3, 7, 3, 15, 0)):
        found.send(place, cell)
    found.close()
    yield found
    found.stop()


def test_shares_are_of_the_table_and_of_alpha_times_it(checked: Pair):
    assert checked.add_up() == np.bincount([3, 7, 3, 15, 0], minlength=16).tolist()
    checked.restart()
    assert checked.add_up() == np.bincount([3, 7, 3, 15, 0], minlength=16).tolist()


def test_a_sum_in_parts_is_in_the_field(tmp_path: Path, clock: Clock):
    count = messages.PLACES_AT_ONCE + 2
    pair = Pair(tmp_path, Crowd("parts", count, alpha=ALPHA), clock).open()
    cells = {0: 3, 7: 3, count - 1: 9}
    for place, cell in cells.items():
        pair.send(place, cell)
    clock.now = CLOSES
    pair.close()
    with limited(people_store, BLOCKS_AT_ONCE=1):
        assert pair.add_up() == np.bincount([*cells.values()], minlength=16).tolist()
    pair.stop()


def test_a_check_that_was_opened_opens_again_only_once_it_has_passed(checked: Pair):
    checked.add_up()
    study = checked.crowd.hash
    for _ in range(2):  # attempts that pass
        checked.stores[0].checking(study, False)
        checked.stores[0].checking(study, True)
    checked.stores[0].checking(study, False)
    for _ in range(2):
        with pytest.raises(StudyError, match="people must come again"):
            checked.stores[0].checking(study, False)
        with pytest.raises(StudyError, match="people must come again"):
            checked.add_up()
        checked.restart()
    # a survey that another aggregator's check has ended is not ended here
    checked.stores[1].checking(study, False)
