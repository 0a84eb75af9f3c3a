"""A server with one method over loopback with TLS, and a stream to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.support.ports import reserved_address
from umpc.errors import EncodingError
from umpc.transport.connections import bind, make_server
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import grpc

TALK = "/umpc.test.Talk/Talk"
Handler = Callable[[grpc.aio.ServicerContext], Awaitable[None]]
Bytes = RpcStream[bytes, bytes]


def decode_small(message: bytes) -> int:
    if len(message) != 1:
        raise EncodingError(f"{len(message)} bytes came where one was due")
    return message[0]


@contextlib.asynccontextmanager
async def serving(identity, handler: Handler) -> AsyncIterator[tuple[str, grpc.aio.Server]]:
    """A server whose one method is the handler; yields its address and itself."""

    async def talk(requests, context):
        await handler(context)

    method = grpc.stream_stream_rpc_method_handler(talk)
    server = make_server(identity, {TALK: {"node"}})
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("umpc.test.Talk", {"Talk": method}),)
    )
    address = await bind(server, identity, reserved_address())
    await server.start()
    try:
        yield address, server
    finally:
        await server.stop(0)


def run(identity, handler: Handler, scenario: Callable[..., Awaitable[None]], **options) -> None:
    """Run a scenario with a stream to a server that runs the handler for it."""

    async def main() -> None:
        async with asyncio.timeout(30), serving(identity, handler) as (address, server):
            decode = options.pop("decode", as_received)
            stream: Bytes = RpcStream("north", "connect", decode, **options)
            try:
                await stream.connect(identity, "node", address)
                stream.begin(stream.channel.stream_stream(TALK)())
                await scenario(stream, server)
            finally:
                await stream.close()

    asyncio.run(main())


async def echo(context) -> None:
    while (message := await context.read()) is not grpc.aio.EOF:
        await context.write(message)


async def silence(context) -> None:
    await asyncio.Event().wait()
