"""The dealer of people: what is dealt once, what a place gets, and what is left on the disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import umpc
from tests.support.dealt_people import (
    AFTER,
    DURING,
    FIRST,
    SECOND,
    DealtPeople,
    device_key,
    keys_of,
    open_study,
    opened_cells,
    tokens,
)
from umpc.crypto.field import P
from umpc.crypto.prg import digest
from umpc.dealer import people
from umpc.dealer.people import PeopleDealer
from umpc.errors import ConfigError, MessageRefused, RemoteProtocolError, StudyError
from umpc.mpc.fss.point import key_bytes
from umpc.people.messages import PLACES_AT_ONCE, offset, open_secret, secret_request
from umpc.protocols.people.terms import key_bytes_of, messages_of
from umpc.study.settings import LYING_NODES
from umpc.testing import limited, lying

ROOT = Path(umpc.__file__).parents[1]
DEVICE, OTHER = bytes([7] * 32), bytes([8] * 32)
SEVERAL = 2 * PLACES_AT_ONCE + 100
"""Places of three blocks."""


class Recorded:
    """Random bytes, which it remembers in parts of 32."""

    def __init__(self):
        self.parts: list[bytes] = []

    def __call__(self, count: int) -> bytes:
        data = os.urandom(count)
        self.parts += [data[at : at + 32] for at in range(0, count, 32)]
        return data


def on_disk(folder: Path, parts: list[bytes]) -> list[int]:
    """The numbers of the parts of which some file of a folder has one half.

    A part may be on two pages of a database; one half is then on one page.
    """
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    halves = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in parts]
    return [number for number, both in enumerate(halves) if any(half in content for half in both)]


def dies(folder: Path, program: str, failpoint: str = "") -> bytes:
    """The output of a process that opens the study of three blocks and is killed later."""
    begin = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.support.dealt_people import *\n"
        f"at = DealtPeople(Path(sys.argv[1]), {SEVERAL})\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", begin + program, folder],
        cwd=ROOT,
        env={**os.environ, "UMPC_FAILPOINT": failpoint},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()
    return ran.stdout


# --- dealing ---


def test_dealt_keys_are_1_at_r_of_the_secret_that_the_person_gets(tmp_path):
    with DealtPeople(tmp_path, 5) as at:
        (first, *blocks), (second, *same) = at.deal(FIRST), at.deal(SECOND)
        assert blocks == same and first != second
        cells = opened_cells(at.survey, [first, second], blocks)
        at.confirm()
        r = [offset(at.survey, place, at.secret(place, DEVICE)) for place in range(5)]
        assert cells.tolist() == np.eye(at.survey.cells, dtype=np.uint64)[r].tolist()


def test_every_block_opens_to_one_cell_a_place(tmp_path):
    with DealtPeople(tmp_path, SEVERAL) as at:
        (first, *blocks), (second, *_) = at.deal(FIRST), at.deal(SECOND)
        assert sum(map(len, blocks)) == at.total
        cells = opened_cells(at.survey, [first, second], blocks)
        assert (cells.max(axis=1) == 1).all() and (cells.sum(axis=1) == 1).all()
        assert len(set(cells.argmax(axis=1).tolist())) == at.survey.cells


@pytest.mark.parametrize("already", [0, 1, 4096 * 64 - 1, 4096 * 64, 4096 * 64 + 17, 10**6])
def test_an_aggregator_goes_on_from_any_byte(tmp_path, already):
    with DealtPeople(tmp_path, SEVERAL) as at:
        seed, *blocks = at.deal()
        whole = b"".join(blocks)
        already = min(already, at.total - 1)
        again, *rest = at.deal(FIRST, already)
        assert again == seed and b"".join(rest) == whole[already:]


def test_both_ask_at_once_and_get_one_list(tmp_path):
    begin = Barrier(2)

    def ask(aggregator: str) -> list[bytes]:
        begin.wait()
        return at.deal(aggregator)

    with DealtPeople(tmp_path, SEVERAL) as at:
        with ThreadPoolExecutor(2) as both:
            (first, *blocks), (second, *same) = both.map(ask, [FIRST, SECOND])
        assert blocks == same == at.deal()[1:]
        cells = opened_cells(at.survey, [first, second], blocks)
        assert (cells.sum(axis=1) == 1).all()


def test_a_study_that_is_opened_again_keeps_secrets_and_seeds(tmp_path):
    with DealtPeople(tmp_path, 5) as at:
        before = at.deal()
        again = iter(keys_of(5))
        at.dealer.open_study(at.study, again)
        assert next(again, None) is None, "a stream is read to its end"
        assert at.deal() == before
    with DealtPeople(tmp_path, 5) as at:
        assert at.deal() == before


@pytest.mark.parametrize("caller", ["node-2", "coordinator", "dealer", ""])
def test_only_the_two_aggregators_get_keys(tmp_path, caller):
    with DealtPeople(tmp_path, 5) as at, pytest.raises(RemoteProtocolError, match="are node-0 and"):
        at.deal(caller)


@pytest.mark.parametrize("already", [-1, 5 * 80 + 1])
def test_more_bytes_than_were_dealt_are_those_of_another_dealer(tmp_path, already):
    with DealtPeople(tmp_path, 5) as at:
        with pytest.raises(RemoteProtocolError, match="has dealt 0") as found:
            at.deal(FIRST, already)
        assert found.value.culprit == FIRST


def test_nobody_confirms_keys_that_are_not_dealt(tmp_path):
    with (
        DealtPeople(tmp_path, 5) as at,
        pytest.raises(RemoteProtocolError, match="has dealt 0"),
    ):
        at.deal(FIRST, at.total)


# --- a dealer that is killed ---


def test_a_dealer_that_dies_before_it_notes_a_block_has_dealt_none(tmp_path):
    dies(tmp_path, "at.deal()", "people_dealt_block:kill")
    with DealtPeople(tmp_path, SEVERAL) as at:
        with pytest.raises(RemoteProtocolError, match="has dealt 0"):
            at.deal(FIRST, PLACES_AT_ONCE * key_bytes(16))
        (first, *blocks), (second, *same) = at.deal(FIRST), at.deal(SECOND)
        assert blocks == same
        cells = opened_cells(at.survey, [first, second], blocks)
        assert (cells.max(axis=1) == 1).all() and (cells.sum(axis=1) == 1).all()


def test_bytes_that_left_before_a_dealer_died_are_the_same_afterwards(tmp_path):
    sent = dies(
        tmp_path,
        "parts = at.dealer.deal(at.survey.hash, SECOND, 0)\n"
        "for _ in range(3):\n"
        "    sys.stdout.buffer.write(next(parts))\n"
        "sys.stdout.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
    )
    with DealtPeople(tmp_path, SEVERAL) as at:
        seed, *blocks = at.deal(SECOND)
        assert sent == seed + blocks[0] + blocks[1]
        rest = at.deal(SECOND, len(sent) - len(seed))
        assert rest == [seed, blocks[2]]
        cells = opened_cells(at.survey, [at.deal(FIRST)[0], seed], blocks)
        assert (cells.sum(axis=1) == 1).all()


def test_a_dealer_that_dies_while_it_draws_secrets_has_opened_nothing(tmp_path):
    drawn = (
        "calls = []\n"
        "def entropy(count):\n"
        "    calls.append(count)\n"
        "    if len(calls) == 4:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return bytes(count)\n"
        f"DealtPeople(Path(sys.argv[1]) / 'new', {SEVERAL}, entropy)\n"
    )
    dies(tmp_path, drawn)
    dealer = PeopleDealer(tmp_path / "new", now=lambda: DURING)
    with pytest.raises(MessageRefused, match="no such study"):
        dealer.deal(messages_of(open_study(SEVERAL)).hash, FIRST, 0)
    dealer.close()
    with DealtPeople(tmp_path / "new", SEVERAL) as at:
        (first, *blocks), (second, *_) = at.deal(FIRST), at.deal(SECOND)
        assert bytes(32) not in (first, second)
        cells = opened_cells(at.survey, [first, second], blocks)
        assert (cells.sum(axis=1) == 1).all()


def test_a_device_gets_its_secret_from_a_dealer_that_died_before_it_answered(tmp_path):
    with DealtPeople(tmp_path, SEVERAL) as at:
        (first, *blocks), (second, *_) = at.deal(FIRST), at.deal(SECOND)
    dies(tmp_path, "at.confirm()\nat.ask(3, bytes([7] * 32))\n", "people_secret_stored:kill")
    with DealtPeople(tmp_path, SEVERAL) as at:
        assert isinstance(at.ask(3, OTHER), MessageRefused)
        cells = opened_cells(at.survey, [first, second], blocks)
        assert cells[3].argmax() == offset(at.survey, 3, at.secret(3, DEVICE))


# --- secrets of places ---


@pytest.fixture
def at(tmp_path):
    """Provide a study of five places whose keys both aggregators have."""
    with DealtPeople(tmp_path / "dealer", 5) as found:
        found.deal()
        found.confirm()
        yield found


def test_a_place_opens_once_and_for_one_device(at):
    reply = at.ask(2, DEVICE)
    assert at.ask(2, DEVICE) == reply and len(reply) == 80
    refused = at.ask(2, OTHER)
    assert isinstance(refused, MessageRefused) and "ask the organiser" in refused.message
    assert at.ask(2, DEVICE) == reply
    assert at.secret(3, OTHER) != at.secret(2, DEVICE)


def test_of_many_devices_that_ask_at_once_one_gets_the_secret(at):
    devices = [bytes([10 + number] * 32) for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda device: at.ask(4, device), devices))
    (winner,) = (number for number, reply in enumerate(replies) if isinstance(reply, bytes))
    assert at.ask(4, devices[winner]) == replies[winner]
    assert len(open_secret(at.survey, 4, devices[winner], replies[winner])) == 32


def test_a_signature_of_another_place_gets_nothing_and_spoils_nothing(at):
    assert "not signed" in at.ask(2, OTHER, signer=1).message
    assert isinstance(at.ask(2, DEVICE), bytes)


def test_a_request_of_another_study_gets_nothing(at):
    other = messages_of(open_study(5, name="another study"))
    request = 2, *secret_request(other, 2, tokens()[2][0], DEVICE)
    (reply,) = at.dealer.secrets(at.survey.hash, [request])
    assert isinstance(reply, MessageRefused) and "not signed" in reply.message
    with pytest.raises(MessageRefused, match="no such study of people"):
        at.dealer.secrets(other.hash, [request])


@pytest.mark.parametrize("place", [-1, 5, 4096, 1 << 62])
def test_a_place_that_the_study_has_not_is_named(at, place):
    (reply,) = at.dealer.secrets(at.survey.hash, [(place, device_key(DEVICE), bytes(64))])
    assert isinstance(reply, MessageRefused) and str(place) in reply.message


@pytest.mark.parametrize("device", [bytes(32), b"", bytes(31), bytes([7]) * 33])
def test_an_unusable_key_of_a_device_is_refused_and_spoils_nothing(at, device):
    key = Ed25519PrivateKey.from_private_bytes(tokens()[1][0])
    place = (1).to_bytes(8, "little")
    signature = key.sign(digest(b"umpc request of a secret 1", at.survey.hash, place, device))
    (reply,) = at.dealer.secrets(at.survey.hash, [(1, device, signature)])
    assert isinstance(reply, MessageRefused) and "unusable" in reply.message
    assert isinstance(at.ask(1, DEVICE), bytes)


def test_signatures_are_checked_while_other_calls_are_answered(at):
    with ThreadPoolExecutor(1) as threads:

        def checked(honest, survey, place, *given):
            if place == 1:
                replies.append(threads.submit(at.ask, 2, DEVICE).result(10))
            honest(survey, place, *given)

        replies: list[bytes] = []
        with lying("dealer", check_secret_request=checked):
            assert "not signed" in at.ask(1, OTHER, signer=3).message
    assert [len(each) for each in replies] == [80]


def test_one_call_answers_many_and_a_refusal_stops_none(at):
    seeds = [seed for seed, _ in tokens()]
    made = [(p, *secret_request(at.survey, p, seeds[p], DEVICE)) for p in (0, 1, 1)]
    other = 1, *secret_request(at.survey, 1, seeds[1], OTHER)
    first, second, again, refused = at.dealer.secrets(at.survey.hash, [*made, other])
    assert second == again and isinstance(refused, MessageRefused)
    found = [open_secret(at.survey, p, DEVICE, reply) for p, reply in enumerate([first, second])]
    assert len({*found}) == 2


def test_no_secret_leaves_before_both_aggregators_have_all_keys(tmp_path):
    with DealtPeople(tmp_path, SEVERAL) as at:
        parts = at.dealer.deal(at.survey.hash, FIRST, 0)
        for aggregator in (None, None, None, None, FIRST):
            _ = at.deal(aggregator, at.total) if aggregator else next(parts)
            with pytest.raises(MessageRefused, match="not open yet"):
                at.ask(0, DEVICE)
        at.confirm()
        assert isinstance(at.ask(0, DEVICE), bytes)


def test_no_key_is_dealt_once_a_secret_may_be_gone(tmp_path):
    with DealtPeople(tmp_path, SEVERAL) as at:
        parts = at.dealer.deal(at.survey.hash, FIRST, 0)
        seed, first = next(parts), next(parts)
        assert at.deal() == [seed, first, *at.deal()[2:]]
        at.confirm()
        at.secret(3, DEVICE)
        with pytest.raises(RemoteProtocolError, match="deals none once both"):
            next(parts)


@pytest.mark.parametrize("confirmed", [0, 1, 2])
def test_a_folder_in_which_a_former_dealer_gave_secrets_early_makes_no_key(tmp_path, confirmed):
    """Keys without the secret would be other keys over one root: both would show the cell."""
    with DealtPeople(tmp_path, 5) as at:
        at.deal(FIRST)
        at.deal(SECOND)
        at.confirm()
        secret = at.secret(0, DEVICE)
    with closing(sqlite3.connect(tmp_path / "people.db")) as db, db:
        db.execute("UPDATE surveys SET confirmed = ?", (confirmed,))
    with DealtPeople(tmp_path, 5) as at:
        for name in (FIRST, SECOND):
            with pytest.raises(RemoteProtocolError, match="deals none once both"):
                at.deal(name)
        assert at.secret(0, DEVICE) == secret
        assert at.secret(1, DEVICE) != secret


def test_a_study_that_has_closed_gives_out_nothing(at):
    at.now = AFTER - 1
    assert isinstance(at.ask(0, DEVICE), bytes)
    for _ in range(2):
        at.now = AFTER
        for refused in (lambda: at.ask(0, DEVICE), at.deal):
            with pytest.raises(MessageRefused, match="has closed"):
                refused()
        at.dealer.sweep()
        at.now = DURING
        # a clock that goes back opens nothing again, and deals nothing again
        at.dealer.open_study(at.study, keys_of(5))
        with pytest.raises(MessageRefused, match="has closed"):
            at.deal()


def test_a_device_hears_which_aggregator_has_not_said_that_it_has_all_keys(tmp_path):
    with DealtPeople(tmp_path, 5) as at:
        for named, aggregator in ((f"{FIRST} and {SECOND} has", FIRST), (f"{SECOND} has", SECOND)):
            with pytest.raises(MessageRefused, match=f"not open yet: {named} not confirmed"):
                at.ask(0, DEVICE)
            at.deal(aggregator)
            at.deal(aggregator, at.total)
        assert isinstance(at.ask(0, DEVICE), bytes)


def test_a_block_of_a_study_that_is_forgotten_meanwhile_is_not_another_ones(tmp_path):
    """The other study then has the number that the forgotten one had in the database."""
    short = open_study(3, name="a shorter one", closes="2026-12-01T09:00:00Z")
    late = open_study(3, name="a later one")

    def generate(honest, *given, **named):
        at.now += 3600
        at.dealer.sweep()
        at.dealer.open_study(late, keys_of(3))
        return honest(*given, **named)

    with DealtPeople(tmp_path, 5) as at:
        at.dealer.open_study(short, keys_of(3))
        with lying("dealer", generate=generate):
            assert len(list(at.dealer.deal(messages_of(short).hash, FIRST, 0))) == 2
        with pytest.raises(RemoteProtocolError, match="has dealt 0"):
            at.dealer.deal(messages_of(late).hash, FIRST, 3 * key_bytes_of(late))


# --- what is left on the disk ---


def test_a_fetched_secret_is_gone_and_the_others_go_when_the_study_closes(tmp_path):
    drawn = Recorded()
    with DealtPeople(tmp_path, 300, drawn) as at:
        at.deal()
        parts = list(drawn.parts)  # two seeds, and the secrets by place
        at.dealer.sweep()
        assert len(parts) == 302 and on_disk(tmp_path, parts) == [*range(302)]
        at.confirm()
        at.dealer.sweep()
        assert on_disk(tmp_path, parts) == [*range(2, 302)]
        assert at.secret(3, DEVICE) == parts[2 + 3]
        assert drawn.parts[302] not in b"".join(parts)  # the sealing key, which nobody keeps
        at.dealer.sweep()
        assert on_disk(tmp_path, drawn.parts) == [2, 3, 4, *range(6, 302)]
        sealed = at.ask(3, DEVICE)
        assert on_disk(tmp_path, [sealed]) == [0]
        at.now = AFTER
        at.dealer.sweep()
        assert on_disk(tmp_path, [*drawn.parts, sealed]) == []
    assert on_disk(tmp_path, [*drawn.parts, sealed]) == []
    assert on_disk(tmp_path, [at.survey.hash]) == [0]


def test_keys_stay_until_both_aggregators_have_them(tmp_path):
    with DealtPeople(tmp_path, 5) as at:
        before = at.deal(FIRST)
        at.deal(FIRST, at.total)
        at.dealer.sweep()
        assert at.deal(FIRST) == before and at.deal(SECOND)[1:] == before[1:]
        at.confirm()
        at.dealer.sweep()
        at.confirm()
        with pytest.raises(RemoteProtocolError, match="deals none once both"):
            at.deal(FIRST)
        assert isinstance(at.ask(0, DEVICE), bytes)


def test_a_sweep_takes_one_study_and_leaves_the_other(tmp_path):
    with DealtPeople(tmp_path, 5) as at:
        before = at.deal()
        at.confirm()
        short = open_study(3, name="a shorter one", closes="2026-12-01T09:00:00Z")
        at.dealer.open_study(short, keys_of(3))
        list(at.dealer.deal(messages_of(short).hash, FIRST, 0))
        at.now += 3600
        at.dealer.sweep()
        with pytest.raises(MessageRefused, match="has closed"):
            at.dealer.deal(messages_of(short).hash, FIRST, 0)
        assert at.deal(SECOND, len(before[1])) == [] and isinstance(at.ask(4, DEVICE), bytes)


# --- opening, and limits ---


@pytest.mark.parametrize(
    "keys",
    [
        keys_of(5)[:4],
        keys_of(6),
        (*keys_of(5)[:4], bytes(32)),
        (*keys_of(5)[:4], keys_of(5)[0]),
        (*keys_of(5)[:4], bytes(31)),
        (),
    ],
    ids=["one less", "one more", "another one", "one twice", "short", "none"],
)
def test_a_list_that_is_not_the_studys_opens_nothing(tmp_path, keys):
    drawn = Recorded()
    dealer = PeopleDealer(tmp_path, now=lambda: DURING, entropy=drawn)
    study = open_study(5)
    with pytest.raises(StudyError, match="key"):
        dealer.open_study(study, keys)
    with pytest.raises(MessageRefused, match="no such study of people"):
        dealer.deal(messages_of(study).hash, FIRST, 0)
    assert drawn.parts == []
    dealer.open_study(study, keys_of(5))
    assert len(list(dealer.deal(messages_of(study).hash, FIRST, 0))) == 2
    dealer.close()


def test_a_study_whose_closing_time_is_past_is_refused(tmp_path):
    dealer = PeopleDealer(tmp_path, now=lambda: AFTER)
    with pytest.raises(StudyError, match="later closing time"):
        dealer.open_study(open_study(5), keys_of(5))
    dealer.close()


def test_a_folder_has_so_many_places_and_studies_that_closed_do_not_count(tmp_path):
    with limited(people, MOST_PLACES=9), DealtPeople(tmp_path, 5) as at:
        later = open_study(5, name="later", closes="2027-01-01T00:00:00Z")
        with pytest.raises(StudyError, match="up to 9 places, and 5 are taken"):
            at.dealer.open_study(later, keys_of(5))
        at.now = AFTER
        at.dealer.sweep()
        at.dealer.open_study(later, keys_of(5))


def test_a_folder_belongs_to_one_dealer(tmp_path):
    with DealtPeople(tmp_path, 5), pytest.raises(ConfigError, match="no other dealer") as found:
        PeopleDealer(tmp_path)
    assert "locked" in found.value.detail
    DealtPeople(tmp_path, 5).dealer.close()


def test_a_file_of_keys_that_a_former_dealer_kept_is_gone(tmp_path):
    former = tmp_path / f"{'0' * 64}.keys"
    former.touch()
    with DealtPeople(tmp_path, 5):
        assert not former.exists()


def test_nobody_else_can_read_the_files(tmp_path):
    with DealtPeople(tmp_path / "dealer", 5) as at:
        at.deal()
        assert (tmp_path / "dealer").stat().st_mode & 0o077 == 0
        files = list((tmp_path / "dealer").iterdir())
        assert len(files) == 2 and not any(path.stat().st_mode & 0o077 for path in files)


# --- where aggregators may lie --------------------------------------------------------------------


def test_keys_are_of_one_and_alpha_which_the_dealer_keeps_after_closing(tmp_path):
    with DealtPeople(tmp_path, 5, adversary=LYING_NODES) as dealt:
        alpha = dealt.dealer.alpha(dealt.survey.hash)
        assert 0 <= alpha < P
        both = [dealt.deal(name) for name in (FIRST, SECOND)]
        seeds, blocks = [each[0] for each in both], both[0][1:]
        assert sum(map(len, blocks)) == dealt.total == 5 * (16 * 1 + 128)
        cells = opened_cells(dealt.survey, seeds, blocks, authenticated=True)
        pairs = cells.reshape(5, -1, 2)
        assert [row[row[:, 0] > 0].tolist() for row in pairs] == [[[1, alpha]]] * 5
        assert (pairs[pairs[..., 0] == 0] == 0).all()
        assert str(alpha) not in repr(dealt.dealer)
        dealt.now = AFTER
        dealt.dealer.sweep()
    with DealtPeople(tmp_path / "other", 5, adversary=LYING_NODES) as other:
        assert other.dealer.alpha(other.survey.hash) != alpha, "each survey has its own"
    again = PeopleDealer(tmp_path, now=lambda: AFTER + 1)
    try:
        assert again.alpha(dealt.survey.hash) == alpha, "it is on disk"
    finally:
        again.close()


def test_alpha_is_forgotten_at_the_last_time(tmp_path):
    with DealtPeople(tmp_path, 5, adversary=LYING_NODES) as dealt:
        alpha = dealt.dealer.alpha(dealt.survey.hash).to_bytes(8, "little")
        dealt.now = AFTER + people.KEPT_SECONDS
        with pytest.raises(StudyError, match="people must come again"):
            dealt.dealer.alpha(dealt.survey.hash)
        dealt.dealer.sweep()
        assert not any(alpha in path.read_bytes() for path in tmp_path.iterdir())


def test_an_honest_study_has_no_alpha(tmp_path):
    with (
        DealtPeople(tmp_path, 5) as dealt,
        pytest.raises(StudyError, match="has no keys of this study"),
    ):
        dealt.dealer.alpha(dealt.survey.hash)
