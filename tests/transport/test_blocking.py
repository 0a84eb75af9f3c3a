"""The list of a call for a thread: it ends with an empty part, has a limit, and is waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from operator import attrgetter

import pytest

from umpc.errors import RemoteProtocolError, StepTimeout, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.testing import limited
from umpc.transport import blocking
from umpc.transport.blocking import pulled, told
from umpc.transport.tls import grpc

PARTS = [b"a" * 64, b"b" * 32]
MOST = 96


class Caller:
    """The server's end of a call whose caller sends these messages. None: it falls silent."""

    def __init__(self, messages: Sequence[bytes | None]):
        self.messages = list(messages)

    async def read(self):
        if not self.messages:
            return grpc.aio.EOF  # it ended its side, cancelled the call, or died
        message = self.messages.pop(0)
        if message is None:
            await asyncio.Event().wait()
        return pb.PeopleList(keys=message)

    async def write(self, message) -> None:
        pass


class Disk:
    def __init__(self):
        self.keys: list[bytes] = []

    def take(self, keys: Iterator[bytes]) -> None:
        self.keys = list(keys)
        self.thread = threading.current_thread().name


def taken(disk: Disk, *messages: bytes | None) -> Caller:
    """A disk that takes the keys of this list. Returns: the call at its end."""
    caller = Caller(messages)

    async def main() -> None:
        parts = pulled(caller, "coordinator", attrgetter("keys"), MOST)
        await told(caller, "places", lambda _: disk.take(parts))

    asyncio.run(main())
    return caller


def test_a_list_ends_with_an_empty_part():
    disk = Disk()
    assert taken(disk, *PARTS, b"", b"unread").messages == [b"unread"]
    assert disk.keys == PARTS
    assert disk.thread.startswith("people-calls"), "a pool of its own"


@pytest.mark.parametrize(
    ("messages", "kind", "words"),
    [
        (PARTS, RemoteProtocolError, "the call ended before"),
        ([], RemoteProtocolError, "the call ended before"),
        ([*PARTS, None], StepTimeout, "within"),
        ([*PARTS, b"c", b""], RemoteProtocolError, "at most 96 bytes"),
    ],
)
def test_any_other_list_is_refused(messages: Sequence[bytes], kind: type[UmpcError], words: str):
    disk = Disk()
    with limited(blocking, MESSAGE_SECONDS=0.1), pytest.raises(kind, match=words) as caught:
        taken(disk, *messages)
    assert not disk.keys
    assert caught.value.culprit == "coordinator"
