"""The disk of a site of linked rows: one list, one signature, one table of both sites' rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pytest

from tests.support.linked import NOW, LinkedPair, LinkedRun
from tests.support.people import linked_study
from umpc.crypto import field
from umpc.dealer.people import PeopleDealer
from umpc.errors import FailedCheck, MessageRefused, RemoteProtocolError, StudyError
from umpc.people import messages
from umpc.people.linked import HEAD_BYTES, RowList
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.people.settings import seconds_of
from umpc.protocols.people.terms import check_box_keys, key_bytes_of, messages_of, terms_of
from umpc.protocols.registry import checked
from umpc.simulation import AUTHORITY
from umpc.study.settings import HONEST, LYING_NODES
from umpc.testing import without

ROWS = 40


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[..., LinkedPair]]:
    """Provide pair(grade), whose files are closed after the test."""
    made: list[LinkedPair] = []

    def make(grade: str = HONEST, rows: int = ROWS, **bounds) -> LinkedPair:
        rng = np.random.default_rng(rows)
        values = [rng.integers(0, 4, rows) for _ in range(2)]
        made.append(LinkedPair(tmp_path / str(len(made)), values, grade, **bounds))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def added(pair: LinkedPair) -> list[tuple[bytes, bytes]]:
    """Both sign and add up."""
    signed = pair.signed()
    for side in (0, 1):
        pair.add_up(signed, side)
    return signed


def histogram(pair: LinkedPair) -> list[int]:
    return grid_of(pair.study).tabulate(dict(zip("xy", pair.values, strict=True))).tolist()


@pytest.mark.parametrize("rows", [2, ROWS, 5000])
def test_both_shares_are_the_histogram_of_the_rows(pair, rows):
    found = pair(rows=rows)
    first, second = found.shares(added(found))
    assert (first + second).tolist() == histogram(found)
    assert first.tolist() != histogram(found) and found.reads == [1, 1]


def test_axes_in_another_order_than_the_sites_come_back(pair):
    """The first site has x; the kernel takes y first, and has another number of cells."""
    found = pair(y=("0", "6"), kernels="sign(a.y - b.y) * sign(a.x - b.x)")
    first, second = found.shares(added(found))
    assert (first + second).tolist() == histogram(found) and found.split.cells == (4, 7)


def test_tags_are_alpha_times_the_table(pair):
    found = pair(LYING_NODES)
    table, tags = field.add(*found.shares(added(found)))
    assert table.tolist() == histogram(found)
    alpha = field.constant(found.dealer.alpha(found.survey.hash))
    assert tags.tolist() == field.multiply(table, alpha).tolist()


# --- one list


def own_list(found: LinkedPair, side: int) -> bytes:
    """The list on a site's disk."""
    (path,) = (found.folder / found.names[side]).glob("*.own")
    return path.read_bytes()


def test_a_list_is_made_once_whatever_the_table_has_later(pair):
    found = pair()
    first = found.listed(0)
    found.values[0] = (found.values[0] + 1) % 4
    found.restart(0)
    again = found.listed(0)
    assert first == again
    assert found.listed(1) and found.reads == [1, 1]


def test_a_folder_that_came_back_shows_the_coordinator_no_difference_of_two_lists(pair):
    """Both lists are sealed with one box key. One key of AES would cancel out between them."""
    found = pair()
    folder, copy = found.folder / found.names[1], found.folder / "copy"
    copytree(folder, copy)
    sealed, texts = [found.listed(1)], [own_list(found, 1)]
    found.stores[1].close()
    rmtree(folder)
    copytree(copy, folder)
    found.stores[1] = found.store(1)
    found.values[1] = (found.values[1] + 1) % 4
    sealed.append(found.listed(1))
    texts.append(own_list(found, 1))
    assert found.listed(0) and found.count(0, sealed[1]), "the other site opens it"
    (first, second), tag = (np.frombuffer(each, np.uint8) for each in sealed), 16
    apart = np.frombuffer(texts[0], np.uint8) ^ np.frombuffer(texts[1], np.uint8)
    seen = (first ^ second)[-tag - len(apart) : -tag]
    # two bytes are equal by chance once in 256
    assert np.mean(seen == apart) < 0.1


def test_the_numbers_of_equal_values_are_uniform(pair):
    found = pair(rows=4000)
    found.values[1] = np.full(4000, 3)
    assert found.listed(1)
    numbers = RowList(4, own_list(found, 1)).numbers()
    counts = np.bincount(numbers.astype(np.int64), minlength=4)
    # three degrees of freedom: 30 is reached once in 700,000 tests
    assert ((counts - 1000) ** 2 / 1000).sum() < 30


def test_a_site_signs_one_pair_of_lists(pair):
    found = pair()
    honest = found.listed(1)
    assert found.listed(0)
    statement, signature = found.count(0, honest)
    text = own_list(found, 1)
    forged = found.sealed(1, text[:-4] + bytes([text[-4] ^ 1, 0, 0, 0]))
    with pytest.raises(StudyError, match="has signed another list"):
        found.count(0, forged)
    found.restart(0)
    assert found.count(0, honest) == (statement, signature)
    assert found.stores[0].count(found.survey.hash, [], "") == (statement, signature)


def test_a_coordinator_that_brings_one_site_another_list_has_no_two_signatures(pair):
    """The second site helps it, and makes another list. Both sign, and neither adds up."""
    found = pair()
    lists = [found.listed(side) for side in (0, 1)]
    forged = found.sealed(1, own_list(found, 1)[:HEAD_BYTES] + bytes(4 * ROWS))
    signed = [found.count(0, forged), found.count(1, lists[0])]
    assert signed[0][0] != signed[1][0]
    for side in (0, 1):
        for both in (signed, signed[::-1]):
            with pytest.raises(RemoteProtocolError, match="not both aggregators have signed"):
                found.add_up(both, side)
    with without("both signed the people"):
        found.add_up(signed, 0)  # it would add up what the second site has not sent


def test_the_coordinator_cannot_try_a_guess_of_all_keys(pair):
    """The answer to a list would say whether it has the site's keys: only the other site asks."""
    found = pair()
    assert found.listed(0)
    guess = bytes(32) + own_list(found, 0)[32:HEAD_BYTES] + bytes(4 * ROWS)
    forged = messages.seal_list(found.survey, 0, found.box_key(0), guess, bytes(31) + b"\1")
    renamed = forged[:32] + found.box_key(1) + forged[64:]
    for sealed, words in ((forged, "not sealed by the other site"), (renamed, "does not open")):
        with pytest.raises(StudyError, match=words):
            found.count(0, sealed)
    with without("a list is sealed by the other site"):
        assert found.count(0, forged)


def test_no_list_leaves_and_none_is_signed_after_the_closing_time(pair):
    found = pair()
    lists = [found.listed(side) for side in (0, 1)]
    signed = found.count(1, lists[0])
    found.now = float(seconds_of(terms_of(found.study).closes))
    for late in (lambda: found.listed(0), lambda: found.count(0, lists[1])):
        with pytest.raises(StudyError, match="until the study's closing time"):
            late()
    assert found.stores[1].count(found.survey.hash, [], "") == signed


def test_without_a_list_a_site_says_that_it_has_not_signed(pair):
    found = pair()
    assert found.stores[0].count(found.survey.hash, [], "") == (b"", b"")


@dataclass
class Shown:
    box_key: bytes
    certificate: bytes
    signature: bytes


def test_a_box_key_of_the_coordinator_gets_no_list(pair):
    found = pair()
    shown = []
    for side, own in enumerate(found.owns):
        key, signature = found.stores[side].opened(found.survey.hash)
        shown.append(Shown(key, own.certificate, signature))
    given = AUTHORITY.verify, "coordinator"
    check_box_keys(found.study, shown, *given)
    shown[1].box_key = bytes(31) + b"\1"
    with pytest.raises(RemoteProtocolError, match="key of its boxes"):
        check_box_keys(found.study, shown, *given)


def test_a_site_that_has_made_no_list_signs_nothing(pair):
    found = pair()
    with pytest.raises(StudyError, match="has listed no rows"):
        found.count(0, found.listed(1))


def test_lists_and_keys_are_gone_once_the_share_is_there(pair):
    found = pair()
    added(found)
    for name in found.names:
        assert sorted(path.suffix for path in (found.folder / name).iterdir()) == [
            ".lock",
            ".sqlite",
            ".sqlite-shm",
            ".sqlite-wal",
        ]


def test_nobody_fetches_a_secret_of_a_linked_row(pair):
    found = pair()
    with pytest.raises(MessageRefused, match="linked rows"):
        found.dealer.secrets(found.survey.hash, [(0, bytes(32), bytes(64))])


def test_a_site_that_has_all_keys_gets_none_again_whatever_the_other_one_says(tmp_path):
    """It may have lost its list: another one under these keys would show what has changed."""
    study = checked(linked_study())
    survey, (first, second) = messages_of(study), (node.name for node in study.nodes)
    with closing(PeopleDealer(tmp_path, now=lambda: NOW)) as dealer:
        dealer.open_study(study, ())
        assert list(dealer.deal(survey.hash, second, 0))
        begun = dealer.deal(survey.hash, second, 0)
        assert next(begun)
        assert list(dealer.deal(survey.hash, second, survey.places * key_bytes_of(study))) == []
        for again in (lambda: dealer.deal(survey.hash, second, 0), lambda: next(begun)):
            with pytest.raises(RemoteProtocolError, match="this site of linked rows"):
                again()
        assert list(dealer.deal(survey.hash, first, 0)), "the other one has not said so"


# --- a site that lies


def shift(found: LinkedPair, side: int) -> None:
    """A site adds up another list of its own than the one that it sent, and that both signed."""
    (path,) = (found.folder / found.names[side]).glob("*.own")
    cells = found.split.cells[side]
    text = RowList(cells, path.read_bytes())
    numbers = text.numbers()
    numbers[7] = (int(numbers[7]) + 1) % cells
    path.write_bytes(text.text[:HEAD_BYTES] + numbers.astype("<u4").tobytes())


def test_a_site_that_adds_up_a_shifted_list_is_caught_before_any_share(pair):
    found = pair(LYING_NODES)
    signed = found.signed()
    shift(found, 1)
    for side in (0, 1):
        found.add_up(signed, side)
    run = LinkedRun(found, signed, "shifted").committed()
    with pytest.raises(FailedCheck, match="not that of the people"):
        run.adding.check_signed(run.signatures)
    with without("the total is that of the people"):
        run.adding.check_signed(run.signatures)


def test_honest_sites_pass(pair):
    found = pair(LYING_NODES)
    run = LinkedRun(found, added(found), "honest").committed()
    run.adding.check_signed(run.signatures)
