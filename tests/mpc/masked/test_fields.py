"""Round 1: masked records come back however they are cut into messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels import KERNELS, TRIPLE_KERNELS
from tests.support.mpc_studies import program_of
from umpc.crypto.ring import RINGS
from umpc.errors import EncodingError
from umpc.mpc.masked import fields
from umpc.mpc.masked.fields import (
    check_short,
    fields_frames,
    fields_messages,
    is_short,
    read_fields,
    read_short,
    short_messages,
)
from umpc.mpc.masked.masks import wire_masks

SEED = b"\7" * 32
NAMED = {
    name: (KERNELS[name], (0, 1)) for name in ("kendall_tau", "sign_times_difference", "wide_sign")
}
NAMED["leaning_times_value"] = (TRIPLE_KERNELS["leaning_times_value"], (0, 1, 2))
KENDALL = program_of(KERNELS["kendall_tau"], RINGS[1])


@pytest.mark.parametrize("limit", [1_000_000, 200])
@pytest.mark.parametrize("records", [0, 1, 7, 100])
@pytest.mark.parametrize("name", NAMED)
def test_masked_fields_come_back_however_they_are_cut(monkeypatch, limit, records, name):
    monkeypatch.setattr(fields, "FIELDS_BYTES", limit)
    kernel, pattern = NAMED[name]
    program = program_of(kernel, RINGS[1], pattern)
    masked = wire_masks(program, SEED, 120)
    wanted = (np.arange(records) + 11)[::-1]
    messages = fields_messages(program, masked, wanted)
    assert [(n, m.count, len(m.payload)) for n, m in enumerate(messages)] == list(
        fields_frames(program, records)
    )
    assert sum(message.count for message in messages) == records
    assert all(message.count % 8 == 0 for message in messages[:-1])
    assert all(len(message.payload) <= limit + 8 * len(program.wires) for message in messages)
    assert all(
        (m.step, m.width, m.round) == ("masked_fields", program.wire_bits, 0) for m in messages
    )
    for sent, values in zip(read_fields(program, messages), masked, strict=True):
        assert np.array_equal(sent, values[wanted])


def test_a_kernel_without_wires_sends_no_fields():
    program = program_of(KERNELS["separable"], RINGS[1])
    assert program.wires == () and fields_messages(program, [], np.arange(5)) == [] == read_fields(
        program, []
    )


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b""])
def test_masked_fields_of_a_wrong_length_are_refused(change):
    (message,) = fields_messages(KENDALL, wire_masks(KENDALL, SEED, 20), np.arange(20))
    with pytest.raises(EncodingError):
        read_fields(KENDALL, [replace(message, payload=change(message.payload))])


@pytest.mark.parametrize("count", [19, 21])
def test_another_number_of_records_than_the_message_says_is_refused(count):
    (message,) = fields_messages(KENDALL, wire_masks(KENDALL, SEED, 20), np.arange(20))
    with pytest.raises(EncodingError):
        read_fields(KENDALL, [replace(message, count=count)])


def test_padding_that_is_set_is_refused():
    (message,) = fields_messages(KENDALL, wire_masks(KENDALL, SEED, 3), np.arange(3))
    end = message.payload[-1] | 128
    with pytest.raises(EncodingError, match="padding"):
        read_fields(KENDALL, [replace(message, payload=message.payload[:-1] + bytes([end]))])


@given(
    lists=st.lists(st.lists(st.integers(0, 119), min_size=1, max_size=30), min_size=1, max_size=6)
)
@pytest.mark.parametrize("name", NAMED)
def test_short_messages_are_those_of_each_list_and_are_read_together(name, lists):
    kernel, pattern = NAMED[name]
    program = program_of(kernel, RINGS[1], pattern)
    masked = wire_masks(program, SEED, 120)
    records = [np.array(each) for each in lists]
    messages = short_messages(program, masked, records)
    assert messages == [one for each in records for one in fields_messages(program, masked, each)]
    for message in messages:
        check_short(program, message)
    for read, values in zip(read_short(program, messages), masked, strict=True):
        assert read.tolist() == [value for each in records for value in values[each].tolist()]


def test_no_short_messages_for_nobody():
    assert short_messages(KENDALL, wire_masks(KENDALL, SEED, 5), []) == []


def test_what_is_short_takes_one_message(monkeypatch):
    assert [is_short(KENDALL, count) for count in (0, 1, 1024, 1025)] == [False, True, True, False]
    assert not is_short(program_of(KERNELS["separable"], RINGS[1]), 1)
    monkeypatch.setattr(fields, "FIELDS_BYTES", 200)
    most = next(count for count in range(1, 1000) if not is_short(KENDALL, count)) - 1
    assert (
        len(list(fields_frames(KENDALL, most))) == 1 < len(list(fields_frames(KENDALL, most + 1)))
    )


@given(data=st.data(), count=st.integers(0, 20))
def test_a_short_message_is_refused_if_and_only_if_it_would_be_refused_alone(data, count):
    (message,) = fields_messages(KENDALL, wire_masks(KENDALL, SEED, 20), np.arange(count or 1))
    place = data.draw(st.integers(0, len(message.payload) - 1))
    changed = bytearray(message.payload)
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    payload = bytes(changed)[: data.draw(st.integers(len(changed) - 2, len(changed)))]
    payload += bytes(data.draw(st.integers(0, 2)))
    sent = replace(message, payload=payload, count=data.draw(st.sampled_from([count, count + 1])))
    try:
        expected = read_fields(KENDALL, [sent])
    except EncodingError:
        with pytest.raises(EncodingError):
            check_short(KENDALL, sent)
    else:
        check_short(KENDALL, sent)
        assert all(map(np.array_equal, read_short(KENDALL, [sent]), expected))
