"""umpc/transport/hub/numbering.py: records come once and in order, whatever connections do."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.errors import RemoteProtocolError
from umpc.transport.hub import numbering as n

TOKENS = count(1)


def numbering() -> n.Numbering:
    return n.Numbering("south", lambda: next(TOKENS), lambda: RemoteProtocolError("dropped"))


class Wire:
    """Two ends and what is on its way between them."""

    def __init__(self):
        self.ends = (numbering(), numbering())
        self.under_way: tuple[list[bytes], list[bytes]] = ([], [])
        self.got: tuple[list[bytes], list[bytes]] = ([], [])

    def send(self, end: int) -> bool:
        due = self.ends[end].pull()
        if due is not None:
            self.under_way[1 - end].append(due[1])
        return due is not None

    def deliver(self, end: int) -> None:
        if self.under_way[end]:
            record = self.ends[end].take(self.under_way[end].pop(0))
            if record is not None:
                self.got[end].append(record.payload)
                self.ends[end].consume(len(record.payload), 1)

    def break_off(self, ends: tuple[int, ...]) -> None:
        """Lose what is on its way from and to these ends, which then ask to resume."""
        for end in ends:
            self.under_way[end].clear()
            if end == 0 or len(ends) == 2:
                self.under_way[1 - end].clear()
            self.ends[end].ask()

    def settle(self) -> None:
        for _ in range(20):
            for end in (0, 1):
                self.ends[end].probe()
                while self.send(end):
                    pass
                while self.under_way[1 - end]:
                    self.deliver(1 - end)


ACTIONS = ("write-0", "write-1", "send-0", "send-1", "take-0", "take-1", "lose-0", "lose-both")


@settings(max_examples=150)
@given(st.lists(st.sampled_from(ACTIONS), max_size=60))
def test_every_record_comes_once_and_in_order_over_connections_that_break(actions):
    wire, written = Wire(), ([], [])
    for action in actions:
        what, _, end = action.partition("-")
        if what == "write":
            payload = f"{end} {len(written[int(end)])}".encode()
            written[int(end)].append(payload)
            wire.ends[int(end)].append(n.MESSAGE, payload)
        elif what == "send":
            wire.send(int(end))
        elif what == "take":
            wire.deliver(int(end))
        else:
            wire.break_off((0, 1) if end == "both" else (0,))
    wire.settle()
    assert wire.got[1] == written[0] and wire.got[0] == written[1]
    assert all(end.is_settled and not end.is_asking for end in wire.ends)


def sent(end: n.Numbering, *payloads: bytes) -> list[bytes]:
    for payload in payloads:
        end.append(n.MESSAGE, payload)
    return [end.pull()[1] for _ in payloads]


def test_a_dropped_record_is_noticed_by_the_next_one_and_a_last_one_by_a_probe():
    north, south = numbering(), numbering()
    first, _, third = sent(north, b"1", b"2", b"3")
    assert south.take(first).payload == b"1"
    with pytest.raises(RemoteProtocolError, match="dropped"):
        south.take(third)
    north, south = numbering(), numbering()
    sent(north, b"1")
    north.probe()
    with pytest.raises(RemoteProtocolError, match="dropped"):
        south.take(north.pull()[1])


def test_a_gap_is_legal_only_while_a_question_is_open():
    north, south = numbering(), numbering()
    _, second = sent(north, b"1", b"2")
    south.ask()
    assert south.take(second) is None
    north.take(south.pull()[1])
    resumed = [north.pull()[1] for _ in range(3)]
    assert [record and record.payload for record in map(south.take, resumed)] == [None, b"1", b"2"]
    assert not south.is_asking


def test_records_wait_while_a_question_is_open():
    north = numbering()
    north.append(n.MESSAGE, b"1")
    north.ask()
    assert north.pull()[0] == n.RESUME and north.pull() is None
    north.ask()
    assert north.pull()[0] == n.RESUME, "a question is repeated until its answer comes"


def test_the_window_closes_until_the_application_takes_something():
    north, south = numbering(), numbering()
    part = bytes(n.PART_BYTES)
    written = 0
    while north.has_room(len(part)):
        north.append(n.MESSAGE, part)
        written += 1
    assert written == n.WINDOW // (n.PART_BYTES + n.RECORD_BYTES)
    envelopes = [north.pull()[1] for _ in range(written)]
    for envelope in envelopes:
        south.take(envelope)
    south.settle()
    north.take(south.pull()[1])
    assert north.is_settled and not north.has_room(len(part)), "received is not taken"
    left = n.WINDOW - (written + 1) * n.RECORD_BYTES - written * len(part)
    assert north.has_room(left) and not north.has_room(left + 1)
    south.consume(len(part), 1)
    south.settle()
    north.take(south.pull()[1])
    left += len(part) + n.RECORD_BYTES
    assert north.has_room(left) and not north.has_room(left + 1)


def test_a_peer_that_breaks_the_rules_is_blamed():
    def header(kind, number=0, received=0, taken=0, payload=b""):
        return n.HEADER.pack(kind, number, received, taken) + payload

    south = numbering()
    for bad in (b"", header(n.ACK, received=1), header(n.ACK, taken=1), header(77)):
        with pytest.raises(RemoteProtocolError, match="broke the protocol"):
            south.take(bad)
    with pytest.raises(RemoteProtocolError, match="broke the protocol"):
        south.take(header(n.RESUME, payload=b"short"))
    part = bytes(n.PART_BYTES)
    with pytest.raises(RemoteProtocolError, match="more than was taken"):
        for number in range(n.WINDOW // n.PART_BYTES + 1):
            south.take(header(n.MESSAGE, number, payload=part))


def test_records_without_bytes_close_the_window_too(limit):
    """Otherwise a member that lies fills the memory of another with empty messages."""
    limit(n, WINDOW=1 << 14)
    for kind in (n.MESSAGE, n.PART):
        north, south = numbering(), numbering()
        with pytest.raises(RemoteProtocolError, match="sent more than was taken"):
            for _ in range(n.WINDOW // n.RECORD_BYTES + 1):
                north.append(kind)
                south.take(north.pull()[1])
        assert not north.has_room(0)
