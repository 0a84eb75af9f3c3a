"""Calls of gRPC in the memory of one process, and what a test does to their messages.

Every process reaches others by `Network.dial`, and its servicer stands behind the guard of roles
that real servers have. A message is serialised, passes the network as bytes, and is read from them.
The network writes down each one by its name: who says what to whom. A test has the network wait at
a message, change it, or break a connection there.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from google.protobuf.message import DecodeError

from umpc.errors import CertificateError, PeerUnavailable
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.certificates import ROLES
from umpc.transport.connections import Allowed, RoleGuard
from umpc.transport.heartbeat import BEATEN, METHOD, Calls
from umpc.transport.identity import Identity
from umpc.transport.tls import EOF, grpc

UNTOLD = {"progress"}
"""Messages whose number depends on how fast a machine is."""
Do = Callable[["Said"], Iterable[bytes]]
"""The messages that go on in the place of one."""
REQUESTS = {
    "/umpc.v1.Node/Study": pb.CoordinatorMessage,
    "/umpc.v1.Node/Peer": pb.PeerMessage,
    "/umpc.v1.Dealer/Deal": pb.DealRequest,
    "/umpc.v1.Dealer/Answer": pb.AnswerRequest,
    "/umpc.v1.Shuffler/Deliver": pb.ShuffleRequest,
    "/umpc.v1.Shuffler/Order": pb.OrderRequest,
    "/umpc.v1.Shuffler/Collect": pb.CollectRequest,
}
REPLIES = {
    "/umpc.v1.Node/Study": pb.NodeMessage,
    "/umpc.v1.Node/Peer": pb.PeerMessage,
    "/umpc.v1.Dealer/Deal": pb.Frame,
    "/umpc.v1.Dealer/Answer": pb.Frame,
    "/umpc.v1.Shuffler/Deliver": pb.ShuffleReply,
    "/umpc.v1.Shuffler/Order": pb.OrderReply,
    "/umpc.v1.Shuffler/Collect": pb.CollectReply,
}


@dataclass(frozen=True)
class Said:
    """One message on its way. names: of its parts: a dealer puts small frames together."""

    sender: str
    receiver: str
    data: bytes = field(repr=False)
    message: Any = field(repr=False)
    names: tuple[str, ...]

    def other(self, message: Any) -> bytes:
        """The bytes of another message."""
        data: bytes = message.SerializeToString()
        return data


def names_of(message: Any) -> tuple[str, ...]:
    """The names of a message's parts, as docs/protocol.md and the wire have them."""
    if isinstance(message, pb.Frame):
        return tuple(frame_name(each) for each in (message, *message.more))
    kind = message.WhichOneof("body") if "body" in message.DESCRIPTOR.oneofs_by_name else None
    if kind in ("part", "frame"):
        return (frame_name(getattr(message, kind)),)
    name = type(message).__name__
    own = {
        "DealRequest": "deal",
        "AnswerRequest": "asks",
        "ShuffleReply": "taken",
        "OrderRequest": "order",
    }
    own |= {"OrderReply": "ordered", "CollectRequest": "collect"}
    return (kind or own[name],)


def is_read(kind: Any, data: bytes) -> bool:
    """Whether bytes are a message of this kind."""
    with suppress(DecodeError):
        kind.FromString(data)
        return True
    return False


def frame_name(frame: pb.Frame) -> str:
    name = pb.Step.Name(frame.step).lower()
    return f"{name} {frame.round}" if frame.round else name


@dataclass
class Moment:
    """The moment of one message: `came` says that it is there. `release` lets it go on."""

    sender: str
    receiver: str
    name: str
    count: int
    do: Do
    holds: bool
    came: asyncio.Event = field(default_factory=asyncio.Event)
    said: Said | None = None
    _pipe: Pipe | None = None

    def meets(self, said: Said) -> bool:
        if self.came.is_set() or self.name not in (*said.names, "*"):
            return False
        if self.sender not in (said.sender, "*") or self.receiver not in (said.receiver, "*"):
            return False
        self.count -= 1
        return self.count <= 0

    def reach(self, said: Said, pipe: Pipe) -> list[bytes]:
        self.said, self._pipe = said, pipe
        self.came.set()
        if self.holds:
            pipe.is_held = True
        return list(self.do(said))

    def release(self) -> None:
        """Let a held message go on, and all behind it."""
        self.holds = False
        if self._pipe is not None:
            self._pipe.is_held = False
            self._pipe.flow()


def unchanged(said: Said) -> Iterable[bytes]:
    return [said.data]


class Network:
    """All connections of a house."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.unheard: list[Said] = []
        """Messages in whose place nothing went on that is a message."""
        self._servers: dict[str, MemoryServer] = {}
        self._moments: list[Moment] = []
        self._watching: list[Callable[[Said], None]] = []
        self._connections: list[Connection] = []
        self.dialled = 0
        self.turns: asyncio.Queue[Pipe] | None = None
        """If there is one, it gets each pipe that has something to say, and gives turns."""
        self.silent: set[str] = set()
        """Processes of which nothing comes any more, and which hear nothing."""

    def serve(self, address: str, identity: Identity, allowed: Allowed) -> MemoryServer:
        """Return a server at an address, to which the generated code adds a servicer."""
        self._servers[address] = MemoryServer(identity, allowed)
        return self._servers[address]

    # ---- what a test does ----------------------------------------------------------------------

    def at(
        self,
        sender: str,
        receiver: str,
        name: str,
        do: Do = unchanged,
        *,
        count: int = 1,
        hold: bool = False,
    ) -> Moment:
        """Do something with a message, once. Args: count: the first of its name, or a later one."""
        moment = Moment(sender, receiver, name, count, do, hold)
        self._moments.append(moment)
        return moment

    def hold(self, sender: str, receiver: str, name: str) -> Moment:
        """Let a message wait, and all behind it on its stream, until it is released."""
        return self.at(sender, receiver, name, hold=True)

    def watch(self, look: Callable[[Said], None]) -> None:
        """Have somebody look at each message before anything is done with it."""
        self._watching.append(look)

    def lose(self, name: str) -> None:
        """End a process as far as others can see: all of its connections break, and stay so."""
        self._servers = {at: each for at, each in self._servers.items() if each.name != name}
        for each in [each for each in self._connections if name in each.ends]:
            each.break_off()

    def silence(self, name: str) -> None:
        """Let nothing pass to and from a process any more; no connection ends."""
        self.silent.add(name)

    def begin_again(self) -> None:
        """Forget all: what was said, what is to be done, and who is silent."""
        assert not self._connections
        self._moments.clear()
        self._watching.clear()
        self.said.clear()
        self.unheard.clear()
        self.silent.clear()
        self.turns = None

    # ---- connections ---------------------------------------------------------------------------

    async def dial(
        self,
        identity: Identity,
        name: str,
        role: str,
        address: str,
        timeout: float,
        patience: float = 60,
    ) -> Channel:
        """Connect as `umpc.transport.stream.connect` does."""
        server = self._servers.get(address)
        if server is None:
            await asyncio.sleep(timeout)
            raise PeerUnavailable(f"{name} is not there, at {address}: start it", culprit=name)
        if (server.name, server.role) != (name, role):
            raise CertificateError(f"at {address} is {server.name}, expected {name}")
        self.dialled += 1
        connection = Connection(self, identity, server, f"memory:{identity.name}/{self.dialled}")
        self._connections.append(connection)
        return Channel(connection)

    def closed(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)

    @property
    def open_calls(self) -> int:
        """The calls that are still answered."""
        return sum(len(each.calls) for each in self._connections)

    def passed(self, pipe: Pipe, data: bytes) -> list[bytes]:
        """Write a message down, and return what goes on in its place."""
        kinds = REPLIES if pipe.is_reply else REQUESTS
        if pipe.method not in kinds:
            return [data]
        message = kinds[pipe.method].FromString(data)
        said = Said(pipe.sender, pipe.receiver, data, message, names_of(message))
        self.said.append(said)
        for look in self._watching:
            look(said)
        for moment in self._moments:
            if moment.meets(said):
                passed = moment.reach(said, pipe)
                if not any(is_read(kinds[pipe.method], each) for each in passed):
                    self.unheard.append(said)
                return passed
        return [data]


class Connection:
    """One process's way to another one's server, with its calls."""

    def __init__(self, network: Network, caller: Identity, server: MemoryServer, label: str):
        self.network = network
        self.caller = caller
        self.server = server
        self.label = label
        self.ends = {caller.name, server.name}
        self.calls: list[Call] = []
        self.is_broken = False

    def begin(self, method: str, encode: Any, decode: Any, timeout: float | None) -> Call:
        call = Call(self, method, encode or bytes, decode or bytes, timeout)
        self.calls.append(call)
        if self.is_broken:
            call.break_off()
        else:
            call.task = asyncio.create_task(self.server.answer(call))
        return call

    def break_off(self) -> None:
        """Break, as where a process dies: both ends notice."""
        self.is_broken = True
        self.network.closed(self)
        for call in list(self.calls):
            call.break_off()

    async def close(self) -> None:
        """End all calls in order, from the caller's side."""
        for call in list(self.calls):
            call.cancel()
        self.network.closed(self)


Item = tuple[str, Any]
"""("message", bytes), ("half-close", None), ("cancel", None) or ("status", …)."""


class Pipe:
    """One direction of one call: what is put into it comes out in order, through the network."""

    def __init__(self, call: Call, *, is_reply: bool):
        ends = (call.connection.caller.name, call.connection.server.name)
        self.sender, self.receiver = ends[::-1] if is_reply else ends
        self.network = call.connection.network
        self.method = call.method
        self.is_reply = is_reply
        self.is_held = False
        self._waiting: deque[Item] = deque()
        self._out: deque[Item] = deque()
        self._ended: Callable[[Item], None] = call.heard if is_reply else call.asked
        self.arrived = asyncio.Event()
        self.came: deque[bytes] = deque()
        self.is_over = False

    def put(self, *item: Any) -> None:
        self._waiting.append((item[0], item[1:]))
        if self.network.turns is None or self.method == METHOD:
            self.flow()
        else:
            self.network.turns.put_nowait(self)

    def turn(self) -> None:
        """Let one message pass, or the end."""
        if self._waiting and not self.is_held:
            self._pass_one()

    def flow(self) -> None:
        """Let pass what may."""
        while not self.is_held:
            if {self.sender, self.receiver} & self.network.silent:
                return
            if not self._waiting and not self._out:
                return
            self._pass_one()

    def _pass_one(self) -> None:
        if not self._out:
            kind, rest = self._waiting.popleft()
            if kind == "message":
                self._out += [("message", each) for each in self.network.passed(self, *rest)]
            else:
                self._out.append((kind, rest))
        while self._out and not self.is_held:
            self._deliver(self._out.popleft())

    def _deliver(self, item: Item) -> None:
        if self.is_over:
            return
        if item[0] == "message":
            self.came.append(item[1])
        else:
            self.is_over = True
            self._ended(item)
        self.arrived.set()

    def end(self) -> None:
        """Nothing more comes out."""
        self.is_over = True
        self.arrived.set()

    async def get(self) -> bytes | None:
        """The next message, or None at the end."""
        while not self.came:
            if self.is_over:
                return None
            self.arrived.clear()
            await self.arrived.wait()
        return self.came.popleft()


class Call:
    """The client's end of a call, with the methods of gRPC's calls."""

    def __init__(
        self, connection: Connection, method: str, encode: Any, decode: Any, timeout: float | None
    ):
        self.connection = connection
        self.method = method
        self.task: asyncio.Task[None] | None = None
        self._encode, self._decode, self._timeout = encode, decode, timeout
        self.requests = Pipe(self, is_reply=False)
        self.replies = Pipe(self, is_reply=True)
        self.status: tuple[grpc.StatusCode, str, Any] | None = None

    # ---- what comes out of the pipes ---------------------------------------------------------

    def asked(self, item: Item) -> None:
        """The caller ended its side: with a half-close the handler goes on."""
        if item[0] == "cancel":
            self._stop()

    def heard(self, item: Item) -> None:
        self.status = self.status or item[1]

    def _stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def break_off(self) -> None:
        """The connection broke, and neither end hears more."""
        self.status = self.status or (grpc.StatusCode.UNAVAILABLE, "Socket closed", ())
        self.replies.end()
        self.requests.end()
        self._stop()

    def left(self) -> None:
        """The handler has ended."""
        self.requests.end()
        if self in self.connection.calls:
            self.connection.calls.remove(self)

    # ---- the client's side -------------------------------------------------------------------

    def done(self) -> bool:
        return self.status is not None

    def cancel(self) -> bool:
        if self.done():
            return False
        self.status = (grpc.StatusCode.CANCELLED, "cancelled here", ())
        self.requests.put("cancel")
        self.replies.end()
        return True

    async def write(self, request: Any, /) -> None:
        await asyncio.sleep(0)
        if self.done():
            raise asyncio.InvalidStateError("the call has ended")
        self.requests.put("message", self._encode(request))

    async def done_writing(self) -> None:
        if not self.done():
            self.requests.put("half-close")

    async def read(self) -> Any:
        data = await self.replies.get()
        if data is not None:
            return self._decode(data)
        code, details, words = self.status or (grpc.StatusCode.OK, "", ())
        if code is grpc.StatusCode.OK:
            return EOF
        metadata = grpc.aio.Metadata(*words)
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata, details, None)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._single().__await__()

    async def _single(self) -> Any:
        async with asyncio.timeout(self._timeout):
            reply = await self.read()
            if reply is not EOF:
                await self.read()
        return reply


class Channel:
    """The methods of gRPC's channel that the generated stubs use."""

    def __init__(self, connection: Connection):
        self._connection = connection
        self.certificate = connection.server.certificate
        """The server's, as a channel of umpc has it."""

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Callable[..., Call]:
        def begin(request: Any, *, timeout: float | None = None) -> Call:
            call = self._connection.begin(
                method, request_serializer, response_deserializer, timeout
            )
            call.requests.put("message", request_serializer(request))
            call.requests.put("half-close")
            return call

        return begin

    unary_stream = unary_unary

    def stream_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Callable[..., Call]:
        return lambda: self._connection.begin(
            method, request_serializer, response_deserializer, None
        )

    stream_unary = stream_stream

    async def close(self, grace: float | None = None) -> None:
        await self._connection.close()


# --- servers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Details:
    """The part of `grpc.HandlerCallDetails` that is used."""

    method: str
    invocation_metadata: tuple[()] = ()


class MemoryServer:
    """A server behind the guard of roles, with heartbeats, as `channels.make_server` makes it."""

    def __init__(self, identity: Identity, allowed: Allowed):
        self.name, self.role = identity.name, identity.role
        self.certificate = identity.pair[0]
        calls = Calls(BEATEN)
        self._guard = RoleGuard(identity, {METHOD: ROLES, **allowed}, calls)
        self._handlers: list[Any] = [calls.handler()]

    def add_generic_rpc_handlers(self, handlers: Iterable[Any]) -> None:
        """Add the methods of a servicer, as the generated code does."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Take the same methods a second time, for which gRPC has a faster way."""

    async def answer(self, call: Call) -> None:
        """Answer one call, and send its status."""
        context = Context(call)
        status: tuple[Any, ...] = (grpc.StatusCode.CANCELLED, "", ())
        try:
            details: Any = Details(call.method)
            handler: Any = await self._guard.intercept_service(self._find, details)
            await self._run(handler, context)
            status = (grpc.StatusCode.OK, "", ())
        except grpc.aio.AbortError:
            status = context.status
        except Exception as error:
            status = (grpc.StatusCode.UNKNOWN, f"Unexpected {type(error).__name__}", ())
        finally:
            context.has_ended = True
            call.replies.put("status", *status)
            call.left()

    async def _find(self, details: Any) -> Any:
        found = (each.service(details) for each in self._handlers)
        return next((handler for handler in found if handler is not None), None)

    async def _run(self, handler: Any, context: Context) -> None:
        context.decode = handler.request_deserializer or bytes
        context.encode = handler.response_serializer or bytes
        kinds = (handler.request_streaming, handler.response_streaming)
        behaviour = getattr(handler, "_".join("stream" if each else "unary" for each in kinds))
        request = context.requests() if handler.request_streaming else await context.read()
        if inspect.isasyncgenfunction(behaviour):
            replies = behaviour(request, context)
            try:
                async for reply in replies:
                    await context.write(reply)
            finally:
                await replies.aclose()
            return
        reply = await behaviour(request, context)
        if not handler.response_streaming:
            await context.write(reply)


class Context:
    """The server's end of a call, with the methods of gRPC's context."""

    def __init__(self, call: Call):
        self._call = call
        self.decode: Any = bytes
        self.encode: Any = bytes
        self.has_ended = False
        self.status: tuple[Any, ...] = ()

    async def read(self) -> Any:
        data = await self._call.requests.get()
        return EOF if data is None else self.decode(data)

    async def requests(self) -> AsyncIterator[Any]:
        while (request := await self.read()) is not EOF:
            yield request

    async def write(self, message: Any, /) -> None:
        await asyncio.sleep(0)
        if self.has_ended or self._call.done():
            raise grpc.aio.BaseError("the call has ended")
        self._call.replies.put("message", self.encode(message))

    async def abort(self, code: Any, details: str = "", metadata: Any = (), /) -> NoReturn:
        self.status = (code, details, metadata)
        raise grpc.aio.AbortError(details)

    def peer(self) -> str:
        return self._call.connection.label

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        return {"x509_pem_cert": [self._call.connection.caller.cert_pem]}


def told(said: Iterable[Said]) -> dict[tuple[str, str], list[str]]:
    """Sender and receiver → the names of the messages between them, in order."""
    links: dict[tuple[str, str], list[str]] = {}
    for each in said:
        names = [name for name in each.names if name not in UNTOLD]
        links.setdefault((each.sender, each.receiver), []).extend(names)
    return links
