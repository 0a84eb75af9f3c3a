"""The generated stubs and servicers, with the types that gRPC itself does not have.

They are imported behind `tls`, because TLS 1.2 must be switched off before gRPC is imported.
The Protocols below describe the few methods of gRPC that umpc uses. `node_stub`, `dealer_stub`,
`shuffler_stub` and `hub_stub` give the generated stubs these types.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never, NoReturn, Protocol, TypeVar

from umpc.proto.v1 import umpc_pb2 as pb

from umpc.transport.tls import grpc  # isort: skip  (first: see tls.py)
from umpc.proto.v1 import umpc_pb2_grpc as rpc

__all__ = [
    "EOF",
    "Call",
    "Channel",
    "Context",
    "Greeted",
    "dealer_stub",
    "grpc",
    "hub_stub",
    "node_stub",
    "read",
    "rpc",
    "shuffler_stub",
]

Request = TypeVar("Request", contravariant=True)
Reply = TypeVar("Reply", covariant=True)
Sent = TypeVar("Sent", contravariant=True)
Message = TypeVar("Message")
Received = TypeVar("Received", covariant=True)

Blame = tuple[tuple[str, str], ...]
"""Metadata that go with a status."""
Channel = grpc.aio.Channel
EOF: object = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs do not list it
"""The object that gRPC's `read` returns after the last message."""


class Readable(Protocol[Received]):
    """One end of a stream from which messages can be read."""

    async def read(self) -> Received: ...


async def read(stream: Readable[Message]) -> Message | None:
    """Return the next message of a stream, or None at its end."""
    message = await stream.read()
    return None if message is EOF else message


class Call(Protocol[Request, Reply]):
    """The client's end of a stream.

    A call whose method takes one request has no `write` and no `done_writing`: its `Request` is
    `Never`.
    """

    async def read(self) -> Reply: ...

    async def write(self, request: Request, /) -> None: ...

    async def done_writing(self) -> None: ...

    def cancel(self) -> bool: ...

    def done(self) -> bool: ...


class Context(Protocol[Received, Sent]):
    """The server's end of a call: it reads what the client sent and writes what the client gets."""

    async def read(self) -> Received: ...

    async def write(self, message: Sent, /) -> None: ...

    async def abort(
        self, code: grpc.StatusCode, details: str = "", metadata: Blame = (), /
    ) -> NoReturn: ...

    def auth_context(self) -> Mapping[str, Iterable[bytes]]: ...

    def peer(self) -> str: ...


AnyContext = Context[Any, Any]
Behaviour = Callable[[Any, AnyContext], Any]
"""The function that answers a method: a coroutine or an asynchronous generator function."""
CallDetails = grpc.HandlerCallDetails
Continuation = Callable[[CallDetails], Awaitable[Any]]
"""gRPC's search for the handler of a method."""
if TYPE_CHECKING:
    ServerInterceptor = grpc.aio.ServerInterceptor[Any, Any]
else:
    ServerInterceptor = grpc.aio.ServerInterceptor


class Greeted(Protocol):
    """The methods that every service has."""

    async def Hello(self, request: pb.HelloRequest, /, *, timeout: float) -> pb.HelloReply: ...


class NodeStub(Greeted, Protocol):
    """The calls to a node."""

    async def Contact(
        self, request: pb.ContactRequest, /, *, timeout: float
    ) -> pb.ContactReply: ...

    def Study(self) -> Call[pb.CoordinatorMessage, pb.NodeMessage]: ...

    def Peer(self) -> Call[pb.PeerMessage, pb.PeerMessage]: ...


class DealerStub(Greeted, Protocol):
    """The calls to a dealer."""

    def Deal(self) -> Call[pb.DealRequest, pb.Frame]: ...


class ShufflerStub(Greeted, Protocol):
    """The calls to a shuffler."""

    def Deliver(self) -> Call[pb.ShuffleRequest, pb.ShuffleReply]: ...

    async def Order(self, request: pb.OrderRequest, /, *, timeout: float) -> pb.OrderReply: ...

    def Collect(self, request: pb.CollectRequest, /) -> Call[Never, pb.CollectReply]: ...


class HubStub(Protocol):
    """The calls to a hub."""

    def Join(self) -> Call[pb.HubFrame, pb.HubFrame]: ...

    async def Status(
        self, request: pb.HubStatusRequest, /, *, timeout: float
    ) -> pb.HubStatusReply: ...


_generated: Any = rpc


def node_stub(channel: Channel) -> NodeStub:
    """Return the generated stub of a node, with its types."""
    stub: NodeStub = _generated.NodeStub(channel)
    return stub


def dealer_stub(channel: Channel) -> DealerStub:
    """Return the generated stub of a dealer, with its types."""
    stub: DealerStub = _generated.DealerStub(channel)
    return stub


def shuffler_stub(channel: Channel) -> ShufflerStub:
    """Return the generated stub of a shuffler, with its types."""
    stub: ShufflerStub = _generated.ShufflerStub(channel)
    return stub


def hub_stub(channel: Channel) -> HubStub:
    """Return the generated stub of a hub, with its types."""
    stub: HubStub = _generated.HubStub(channel)
    return stub
