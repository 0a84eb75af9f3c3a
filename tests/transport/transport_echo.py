"""A tiny server of bytes over umpc's transport; as a program, a peer that a test can stop.

python -m tests.transport.transport_echo serve FOLDER: prints its address
python -m tests.transport.transport_echo call FOLDER ADDRESS: opens a stream to node 'a', prints
    "open", and waits
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys

from tests.support.ports import reserved_address
from umpc.transport.connections import bind, make_server
from umpc.transport.identity import load_identity
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import grpc, peer_of

CALL, CHAT, WATCH, BUSY = (f"/umpc.test.Echo/{name}" for name in ("Call", "Chat", "Watch", "Busy"))
DEALERS_ONLY, NOT_LISTED = "/umpc.test.Echo/DealersOnly", "/umpc.test.Echo/NotListed"
ALLOWED = {method: ("node", "coordinator") for method in (CALL, CHAT, WATCH, BUSY)} | {
    DEALERS_ONLY: ("dealer",)
}


class Echo:
    """Remembers which handlers ran, and when a stream ended."""

    def __init__(self):
        self.ran = []
        self.ended = asyncio.Event()

    async def call(self, request, context):
        self.ran.append("call")
        peer = peer_of(context)
        return f"{peer.name}.{peer.role} ".encode() + request

    async def chat(self, requests, context):
        self.ran.append("chat")
        try:
            async for request in requests:
                yield request
        finally:
            self.ended.set()

    async def watch(self, request, context):
        self.ran.append("watch")
        await context.write(request)

    async def busy(self, request, context):
        hold_the_interpreter(float(request))
        return request

    def handler(self):
        unary = grpc.unary_unary_rpc_method_handler
        methods = {
            "Call": unary(self.call),
            "Busy": unary(self.busy),
            "Chat": grpc.stream_stream_rpc_method_handler(self.chat),
            "Watch": grpc.unary_stream_rpc_method_handler(self.watch),
            "DealersOnly": unary(self.call),
            "NotListed": unary(self.call),
        }
        return grpc.method_handlers_generic_handler("umpc.test.Echo", methods)


def hold_the_interpreter(seconds):
    """Sleeps without giving up the GIL, as a long computation in C does."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


@contextlib.asynccontextmanager
async def serving(identity, listen="", allowed=ALLOWED):
    """Yields (address, Echo)."""
    echo, server = Echo(), make_server(identity, allowed)
    server.add_generic_rpc_handlers((echo.handler(),))
    address = await bind(server, identity, listen or reserved_address())
    await server.start()
    try:
        yield address, echo
    finally:
        await server.stop(None)


async def _serve(folder):
    async with serving(load_identity(folder)) as (address, _):
        print(address, flush=True)
        await asyncio.sleep(120)


async def _call(folder, address):
    stream = RpcStream("a", "chat", as_received)
    await stream.connect(load_identity(folder), "node", address)
    stream.begin(stream.channel.stream_stream(CHAT)())
    await stream.write(b"hello")
    assert await stream.next("chat") == b"hello"
    print("open", flush=True)
    await stream.next("chat")


if __name__ == "__main__":
    asyncio.run({"serve": _serve, "call": _call}[sys.argv[1]](*sys.argv[2:]))
