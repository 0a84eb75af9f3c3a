"""Round 1: masked records come back however they are cut into messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.kernels import KERNELS, TRIPLE_KERNELS
from tests.support.mpc_studies import program_of
from umpc.crypto.ring import RINGS
from umpc.errors import EncodingError
from umpc.mpc.masked import cells
from umpc.mpc.masked.cells import (
    fields_frames,
    fields_messages,
    read_fields,
)
from umpc.mpc.masked.edge_layout import wire_masks

SEED = b"\7" * 32
NAMED = {
    name: (KERNELS[name], (0, 1)) for name in ("kendall_tau", "sign_times_difference", "wide_sign")
}
NAMED["leaning_times_value"] = (TRIPLE_KERNELS["leaning_times_value"], (0, 1, 2))
KENDALL = program_of(KERNELS["kendall_tau"], RINGS[1])


@pytest.mark.parametrize("most", [1_000_000, 200])
@pytest.mark.parametrize("records", [0, 1, 7, 100])
@pytest.mark.parametrize("name", NAMED)
def test_masked_fields_come_back_however_they_are_cut(limit, most, records, name):
    limit(cells, FIELDS_BYTES=most)
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
    assert all(len(message.payload) <= most + 8 * len(program.wires) for message in messages)
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
