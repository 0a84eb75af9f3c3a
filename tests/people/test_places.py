"""Places: tokens that people type, and lists of keys that stream."""

from __future__ import annotations

import base64
import hashlib
import string
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.studies import Entropy
from umpc.crypto.prg import Stream
from umpc.errors import MessageRefused, StudyError
from umpc.people.messages import Survey, check_secret_request, secret_request
from umpc.people.places import (
    keys_digest,
    new_tokens,
    place_key,
    read_keys,
    read_token,
    token_text,
    write_keys,
)

MANY = 100_000
seeds = st.binary(min_size=32, max_size=32)
TOKEN = token_text(7, bytes(range(32)))


def keys_of(count: int) -> list[bytes]:
    """Any bytes: a list does not ask whether a key is a point."""
    stream = Stream(bytes(32))
    return [stream.bytes(32) for _ in range(count)]


# --- tokens ---------------------------------------------------------------------------------------


def test_the_seed_of_a_token_signs_for_its_place():
    entropy, survey = Entropy("tokens"), Survey(bytes(32), 12, 3, 2)
    pairs = list(new_tokens(3, entropy))
    assert len({seed for seed, _ in pairs}) == len({key for _, key in pairs}) == 3
    for place, (seed, key) in enumerate(pairs):
        read, again = read_token(token_text(place, seed))
        assert (read, again, place_key(again)) == (place, seed, key)
        check_secret_request(survey, place, key, *secret_request(survey, place, again, bytes(32)))


@settings(deadline=None)
@given(place=st.integers(0, 2**40 - 1), seed=seeds)
def test_a_token_is_read_as_it_was_written(place, seed):
    text = token_text(place, seed)
    assert set(text) <= set(string.ascii_lowercase + "234567-") and len(text) == 71
    assert read_token(text) == (place, seed)
    assert read_token(f" {text.upper().replace('-', ' ')}\n") == (place, seed)
    assert read_token(text.replace("-", "")) == (place, seed)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, 63), letter=st.sampled_from(string.ascii_lowercase + "234567"))
def test_one_wrong_letter_is_noticed(at, letter):
    letters = TOKEN.replace("-", "")
    typed = letters[:at] + letter + letters[at + 1 :]
    if typed != letters:
        with pytest.raises(MessageRefused, match="has a typing error"):
            read_token(typed)


@pytest.mark.parametrize("at", range(62))
def test_two_letters_that_change_places_are_noticed(at):
    letters = TOKEN.replace("-", "")
    typed = letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :]
    if typed != letters:
        with pytest.raises(MessageRefused, match="has a typing error"):
            read_token(typed)


@pytest.mark.parametrize(
    "text",
    ["", "-", "abc", TOKEN[:-1], TOKEN[1:], TOKEN + "a", TOKEN + TOKEN, TOKEN[:-1] + "1", "é" * 64],
    ids=range(9),
)
def test_a_text_that_is_no_token_is_refused_and_not_shown(text):
    with pytest.raises(MessageRefused, match="has a typing error") as found:
        read_token(text)
    assert len(text) < 4 or text not in found.value.message + found.value.detail


# --- lists of keys --------------------------------------------------------------------------------


def test_a_list_is_read_as_it_was_written(tmp_path):
    path, keys = tmp_path / "people.keys", keys_of(20)
    write_keys(path, iter(keys))
    assert path.read_text("ascii").splitlines() == [base64.b64encode(k).decode() for k in keys]
    assert list(read_keys(path)) == keys
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(read_keys(path)) == keys


@pytest.mark.parametrize(
    "line",
    [
        "",
        "abc",
        "!" * 44,
        base64.b64encode(bytes(31)).decode(),
        base64.b64encode(bytes(33)).decode(),
    ],
    ids=["empty", "short", "no base64", "31 bytes", "33 bytes"],
)
def test_a_line_that_is_no_key_is_named(tmp_path, line):
    path = tmp_path / "people.keys"
    good = base64.b64encode(bytes(32)).decode()
    path.write_text(f"{good}\n{line}\n{good}\n", "ascii")
    with pytest.raises(StudyError, match=r"people\.keys, line 2: a key of 32 bytes in base64"):
        list(read_keys(path))


def test_a_list_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"people\.keys cannot be read: No such file"):
        list(read_keys(tmp_path / "people.keys"))
    with pytest.raises(StudyError, match="cannot be read"):
        list(read_keys(tmp_path))


def test_a_list_of_many_keys_streams(tmp_path):
    """A key takes at most 40 bytes of memory while the digest is made, and none when it is read."""
    path, stream = tmp_path / "people.keys", Stream(bytes(32))
    write_keys(path, (stream.bytes(32) for _ in range(MANY)))
    tracemalloc.start()
    assert sum(1 for _ in read_keys(path)) == MANY
    read = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    digest, count = keys_digest(read_keys(path))
    digested = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == MANY and read < 1 << 20
    assert digested < 40 * MANY + (1 << 20)
    data = b"".join(keys_of(MANY))
    assert digest == hashlib.sha256(b"umpc keys of places 1" + data).hexdigest()


def test_the_digest_is_of_the_keys_in_their_order():
    keys = keys_of(5)
    assert keys_digest(keys) == keys_digest(iter(keys))
    assert keys_digest(keys)[0] != keys_digest(keys[::-1])[0] != keys_digest(keys[:4])[0]
    assert keys_digest([])[1] == 0


@pytest.mark.parametrize("places", [(0, 1), (0, 49), (20, 30), (48, 49)])
def test_a_key_at_two_places_is_named(places):
    keys = keys_of(50)
    first, second = places
    keys[second] = keys[first]
    shown = base64.b64encode(keys[first]).decode()
    with pytest.raises(StudyError, match="a person would have two places") as found:
        keys_digest(keys)
    assert shown in found.value.message


def test_keys_that_differ_in_zero_bytes_are_two():
    """The zeros at a key's end count, and so do those within it."""
    last = [bytes([1] * 31) + bytes([end]) for end in range(3)]
    inner = [bytes([1]) + bytes(count) + bytes([1]) * (31 - count) for count in range(3, 31)]
    short = [bytes([1] * count) + bytes(32 - count) for count in range(32)]
    keys = [*last, *inner, *short]
    keys = list(dict.fromkeys(keys))
    assert keys_digest(keys)[1] == len(keys) > 55
    with pytest.raises(StudyError, match="two places") as found:
        keys_digest([*keys, bytes(32)])
    assert base64.b64encode(bytes(32)).decode() in found.value.message
