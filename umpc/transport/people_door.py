"""The public door of a dealer or an aggregator: calls of people, who have no certificate.

TLS 1.3, in which only the server shows its certificate. People are known by the signatures inside
their messages, so whoever reaches the address may call. The door bounds what a stranger costs:

| what | bound |
|---|---|
| a message | MOST_BYTES, and MOST_AT_ONCE boxes or requests |
| one address | so many boxes a second (IPv6: one network of 64 bits); a refused box costs as much |
| all addresses | MOST_IN_ALL boxes a second |
| one connection | MOST_STREAMS calls at a time; it ends after 11 minutes, and sooner if idle |
| connections | MOST_CONNECTIONS, and half of the process's files: the next one is closed at once |
| calls that wait for the disk | MOST_WAITING of all callers |
| lists that leave | MOST_LISTS, and MOST_STREAMS of one address; they end with their connections |

A slow caller holds its own connection, and perhaps a list, and nothing else: what it asks is
answered when all of it is there. A firewall before the door limits the connections of one address.

*Client.* The door as a person's device calls it. It trusts one certificate, after it was checked
against the consortium's authority, with name and role, and shows none.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from operator import attrgetter
from typing import Any, NoReturn, Self
from urllib.parse import unquote

from umpc.errors import EncodingError, LocalProtocolError, MessageRefused, UmpcError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.connections import COMMON, LATE_SECONDS, bind, connect, decoding
from umpc.transport.identity import Identity, nobody
from umpc.transport.status import error_of, status_of
from umpc.transport.tls import AnyContext, Channel, grpc, people_stub

MOST_BYTES = 1 << 16
MOST_AT_ONCE = 256
"""The most boxes or requests of one message."""
MOST_PER_SECOND = 2000
"""Boxes a second of one address, unless the administrator says another number."""
MOST_IN_ALL = 10_000
"""Boxes and requests a second of all addresses: what two cores can check."""
MOST_WAITING = 1 << 10
THREADS = 16
"""Calls that are answered at a time. The store writes for all of them together."""
MOST_ADDRESSES = 1 << 16
"""Addresses whose spending is remembered, those that called last."""
MOST_STREAMS = 16
MOST_LISTS = 64
"""Lists that leave at a time. One that nobody reads holds a part in memory."""
MOST_CONNECTIONS = 1 << 11
SWEEP_SECONDS = TELL_SECONDS = 60.0
FAILED = "it failed here; see its log"

OPTIONS = dict(COMMON) | {
    "grpc.max_receive_message_length": MOST_BYTES,
    "grpc.so_reuseport": 0,
    "grpc.max_concurrent_streams": MOST_STREAMS,
    "grpc.server_handshake_timeout_ms": 10_000,
    "grpc.max_connection_idle_ms": 60_000,
    "grpc.max_connection_age_ms": 600_000,
    "grpc.max_connection_age_grace_ms": 60_000,
}
log = logging.getLogger("umpc.people")

Answer = Callable[[bytes, Sequence[Any]], Sequence[bytes | MessageRefused]]
"""A blocking call: a study's hash and requests → an answer to each."""
SECRET, BOX = attrgetter("place", "device", "signature"), attrgetter("place", "box")
"""The parts of a request of either kind."""
AGAIN = "try again in a second"


@dataclass(frozen=True)
class Behind:
    """The calls behind a door. The dealer's has secrets, and an aggregator's the others.

    secrets: requests (place, device key, signature). submit: boxes (place, box).
    counted: a study's hash → parts of its counted rows. sweep: forgets what is due.
    """

    secrets: Answer | None = None
    submit: Answer | None = None
    counted: Callable[[bytes], Iterator[bytes]] | None = None
    sweep: Callable[[], None] = lambda: None


class PublicDoor:
    """The door's server.

    Args:
        listen: "host:port".
        most: boxes a second of one address; 0 for MOST_PER_SECOND.
    """

    def __init__(self, identity: Identity, behind: Behind, listen: str, most: int = 0):
        self._identity = identity
        self._listen = listen
        self._behind = behind
        self._sweeping: asyncio.Task[None] | None = None
        self._budget = Budget(most or MOST_PER_SECOND)
        self._in_all = Budget(MOST_IN_ALL)
        self._threads = ThreadPoolExecutor(THREADS, "people")
        self._waiting = 0
        self._lists: list[str] = []
        self._told = -TELL_SECONDS
        self._server: grpc.aio.Server | None = None

    def __str__(self) -> str:
        return f"{self._identity.role} {self._identity.name}"

    async def start(self) -> str:
        """Listen. Returns: the address. Raises: AddressInUse, ConfigError."""
        limit = {"grpc.max_allowed_incoming_connections": _most_connections()}
        self._server = grpc.aio.server(options=[*(OPTIONS | limit).items()])
        handlers = {
            "Secrets": self._handler(self._behind.secrets, pb.SecretsRequest, "requests", SECRET),
            "Submit": self._handler(self._behind.submit, pb.SubmitRequest, "boxes", BOX),
            "Counted": grpc.unary_stream_rpc_method_handler(
                self._counted, _decoder(pb.PeopleStudy), pb.PeoplePart.SerializeToString
            ),
        }
        generic = grpc.method_handlers_generic_handler("umpc.v1.People", handlers)
        self._server.add_generic_rpc_handlers((generic,))
        address = await bind(self._server, self._identity, self._listen, public=True)
        await self._server.start()
        self._sweeping = asyncio.create_task(self._sweep_often())
        return address

    async def _sweep_often(self) -> None:
        """Let what is behind the door forget what is due."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await asyncio.to_thread(self._behind.sweep)
            except Exception as error:  # the next time may go well
                detail = getattr(error, "detail", "")
                log.error("what is due was not forgotten: %s", detail, exc_info=error)

    async def stop(self, grace: float) -> None:
        """Take no more calls, and end those that are not answered in so many seconds."""
        if self._server is not None and self._sweeping is not None:
            self._sweeping.cancel()
            await self._server.stop(grace)
        self._threads.shutdown(wait=False)

    def _handler(
        self, call: Answer | None, asked: Any, kind: str, parts: Callable[[Any], tuple[Any, ...]]
    ) -> Any:
        """A method that answers each item of a request. kind: their field; parts: those of one."""

        async def answered(request: Any, context: AnyContext) -> pb.PeopleReplies:
            requests = [parts(each) for each in await self._paid(request, context, kind)]
            given = call or self._has_none, request.hash, requests
            found: Sequence[bytes | MessageRefused] = await self._answered(context, *given)
            return pb.PeopleReplies(replies=map(_reply, found))

        serializer = pb.PeopleReplies.SerializeToString
        return grpc.unary_unary_rpc_method_handler(answered, _decoder(asked), serializer)

    async def _counted(self, request: Any, context: AnyContext) -> None:
        """Show who was counted, no faster than boxes may come."""
        await self._paid(request, context)
        caller = network_of(context.peer())
        if len(self._lists) >= MOST_LISTS or self._lists.count(caller) >= MOST_STREAMS:
            await self._refuse(context, f"too many people read lists at this moment; {AGAIN}")
        self._lists.append(caller)
        try:
            counted = self._behind.counted or self._has_none
            rows = await self._answered(context, counted, request.hash)
            while (data := await self._answered(context, next, rows, None)) is not None:
                while not self._budget.take(context.peer(), MOST_AT_ONCE):
                    await asyncio.sleep(1)
                await context.write(pb.PeoplePart(data=data))
        finally:
            self._lists.remove(caller)

    def _has_none(self, study: bytes, requests: Sequence[Any] = ()) -> Any:
        raise MessageRefused(
            f"{self._identity.role} {self._identity.name!r} takes no such message of people: "
            "secrets come from the dealer, and boxes go to aggregators; correct the address"
        )

    async def _paid(self, request: Any, context: AnyContext, kind: str = "") -> Sequence[Any]:
        """Return the items of a request that the caller may have answered now.

        Whatever becomes of them, they count; a message that is none costs as the largest one.
        """
        unreadable = isinstance(request, EncodingError)
        items: Sequence[Any] = getattr(request, kind, ())
        amount = MOST_AT_ONCE if unreadable else min(max(1, len(items)), MOST_AT_ONCE)
        if not self._budget.take(context.peer(), amount):
            await self._refuse(context, f"too much came from one address; {AGAIN}")
        if not self._in_all.take("", amount):
            await self._refuse(context, f"too much came from all addresses; {AGAIN}")
        if unreadable:
            await context.abort(*status_of(request))
        if len(items) > MOST_AT_ONCE:
            refused = MessageRefused(
                f"at most {MOST_AT_ONCE} were expected in one message, and {len(items)} came"
            )
            await context.abort(*status_of(refused))
        return items

    async def _answered(self, context: AnyContext, call: Callable[..., Any], *given: Any) -> Any:
        """Answer by a blocking call in one of the door's own threads."""
        if self._waiting >= MOST_WAITING:
            await self._refuse(context, f"too many people send at this moment; {AGAIN}")
        self._waiting += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(call, *given))
        except Exception as error:
            await self._fail(context, error)
        finally:
            self._waiting -= 1

    async def _fail(self, context: AnyContext, error: Exception) -> NoReturn:
        """End a call by its failure. One that is no caller's fault is told in the own log."""
        if not isinstance(error, MessageRefused) and time.monotonic() >= self._told + TELL_SECONDS:
            self._told = time.monotonic()
            detail = getattr(error, "detail", "")
            log.error("people are not answered (told once a minute): %s", detail, exc_info=error)
        known = error if isinstance(error, UmpcError) else LocalProtocolError(FAILED)
        await context.abort(*status_of(known))

    async def _refuse(self, context: AnyContext, why: str) -> NoReturn:
        words = status_of(MessageRefused(why))[1]
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, words)


def _most_connections() -> int:
    """Half of the files that this process may open, so that the rest of it has the other half."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, files // 2)
    )


def _decoder(asked: Any) -> Callable[[bytes], Any]:
    return decoding(asked.FromString, streams=False)


def _reply(found: bytes | MessageRefused) -> pb.PersonReply:
    if isinstance(found, bytes):
        return pb.PersonReply(data=found)
    return pb.PersonReply(failure=codec.encoded(codec.failure_of(found)))


class Budget:
    """The boxes that each address may still send: `most` more a second, up to `most`."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic):
        self._most = most
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, peer: str, amount: int) -> bool:
        """Whether a caller may send so much now. It costs, unless nothing is left."""
        address, now = network_of(peer), self._now()
        left, since = self._left.pop(address, (float(self._most), now))
        left = min(self._most, left + (now - since) * self._most)
        self._left[address] = left - amount if left > 0 else left, now
        if len(self._left) > MOST_ADDRESSES:
            self._left.popitem(last=False)
        return left > 0


def network_of(peer: str) -> str:
    """The address of a caller, as gRPC names it, without its port; of IPv6 its network."""
    host = unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]").partition("%")[0]
    with contextlib.suppress(ValueError):
        address = ip_address(host)
        address = getattr(address, "ipv4_mapped", None) or address
        return str(address if address.version == 4 else ip_network((address, 64), strict=False))
    return host


# --- client ---------------------------------------------------------------------------------------

CONNECT_SECONDS = 10
CALL_SECONDS = 60
LIST_SECONDS = 3600
TRIES = 30
"""How often a device that was told to try again in a second does."""
STEP = "send"


async def door(
    address: str, ca_pem: bytes, name: str, role: str, patience: float = LATE_SECONDS
) -> Door:
    """Connect to the public door of exactly this name and role. Use it as a context, or close it.

    Args: ca_pem: of the consortium's authority. role: "node" of an aggregator, or "dealer".
    Raises: PeerUnavailable, CertificateError, ConfigError.
    """
    seconds = min(CONNECT_SECONDS, patience)
    channel = await connect(nobody(ca_pem), name, role, address, seconds, patience)
    return Door(channel, name)


class Door:
    """A connection of a person's device to one public door.

    Every call raises PeerLost or StepTimeout where no answer came: the same may then be sent again.
    """

    def __init__(self, channel: Channel, name: str):
        self._channel = channel
        self._name = name
        self._stub = people_stub(channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close(None)

    async def secrets(
        self, study: bytes, requests: Sequence[tuple[int, bytes, bytes]]
    ) -> list[bytes | UmpcError]:
        """Ask the dealer for secrets of places. Args: study: the survey's hash. requests: at most
        MOST_AT_ONCE of place, device key and signature.

        Returns: for each a sealed secret, or why there is none. Raises: MessageRefused.
        """
        asked = [
            pb.SecretRequest(place=place, device=device, signature=signature)
            for place, device, signature in requests
        ]
        request = pb.SecretsRequest(hash=study, requests=asked)
        return await self._replies(self._stub.Secrets, request, len(asked))

    async def submit(
        self, study: bytes, boxes: Sequence[tuple[int, bytes]]
    ) -> list[bytes | UmpcError]:
        """Give an aggregator boxes. Args: as of `secrets`; boxes: place and box.

        Returns: for each a receipt and its signature, or why it was not taken.
        Raises: MessageRefused.
        """
        asked = [pb.PersonBox(place=place, box=box) for place, box in boxes]
        request = pb.SubmitRequest(hash=study, boxes=asked)
        return await self._replies(self._stub.Submit, request, len(asked))

    async def counted(self, study: bytes) -> AsyncIterator[bytes]:
        """Yield an aggregator's counted rows, in parts. Raises: MessageRefused."""
        call = self._stub.Counted(pb.PeopleStudy(hash=study), timeout=LIST_SECONDS)
        try:
            async for part in call:
                yield part.data
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self._name, "counted") from error
        finally:
            call.cancel()

    async def _replies(
        self, call: Callable[..., Any], request: Any, count: int
    ) -> list[bytes | UmpcError]:
        for left in reversed(range(TRIES)):
            try:
                answer: pb.PeopleReplies = await call(request, timeout=CALL_SECONDS)
            except grpc.aio.AioRpcError as error:
                exhausted = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                if not exhausted or not left or AGAIN not in (error.details() or ""):
                    raise error_of(error, self._name, STEP) from error
                await asyncio.sleep(1)
            else:
                break
        if len(answer.replies) != count:
            raise MessageRefused(
                f"{self._name}: {count} answers were expected, and {len(answer.replies)} came; ask "
                "its administrator",
                culprit=self._name,
            )
        return [self._found(reply) for reply in answer.replies]

    def _found(self, reply: pb.PersonReply) -> bytes | UmpcError:
        if reply.WhichOneof("body") == "data":
            return reply.data
        try:
            error = codec.error_of(codec.decode_failure(reply.failure))
        except EncodingError as unreadable:
            error = unreadable
        error.message = f"{self._name}: {error.message}"
        error.args = (error.message,)
        error.culprit = self._name
        return error
