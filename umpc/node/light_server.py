"""The gRPC server of a light node: it loads the node itself at the first call that needs it.

A node that waits needs its certificate and its port, and no protocol. So `umpc node start --light`
serves these calls, and imports the rest when a coordinator comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from umpc.errors import UmpcError
from umpc.node.public_errors import public_error
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocol_version import PROTOCOL
from umpc.transport.identity import Identity
from umpc.transport.services import AnyContext, read, rpc
from umpc.transport.status import status_of

if TYPE_CHECKING:
    from umpc.node.server import NodeServer

log = logging.getLogger("umpc.node")

ALLOWED = {
    "/umpc.v1.Node/Hello": {"coordinator", "node", "dealer"},
    "/umpc.v1.Node/Contact": {"coordinator"},
    "/umpc.v1.Node/Study": {"coordinator"},
    "/umpc.v1.Node/Peer": {"node"},
}
"""The roles that may make each call to a node, light or not."""


class LightServer(rpc.NodeServicer):
    """The calls to a node that is not loaded before one of them needs it.

    Args:
        load: returns the loaded node's calls. It is called again after an error.
    """

    def __init__(self, identity: Identity, load: Callable[[], Awaitable[NodeServer]]):
        self._identity = identity
        self._load = load
        self._loaded: NodeServer | None = None
        self._loading = asyncio.Lock()

    async def Hello(self, request: pb.HelloRequest, context: AnyContext) -> pb.HelloReply:
        """Say who is there."""
        return pb.HelloReply(name=self._identity.name, role=self._identity.role, version=PROTOCOL)

    async def Contact(self, request: pb.ContactRequest, context: AnyContext) -> pb.ContactReply:
        """Let the loaded node answer."""
        try:
            node = await self._node()
        except UmpcError as error:
            await context.abort(*status_of(error))
        return await node.Contact(request, context)

    async def Study(self, requests: object, context: AnyContext) -> None:
        """Let the loaded node run a study."""
        await (await self._for_stream(context)).Study(requests, context)

    async def Peer(self, requests: object, context: AnyContext) -> None:
        """Let the loaded node serve a link."""
        await (await self._for_stream(context)).Peer(requests, context)

    async def _for_stream(self, context: AnyContext) -> NodeServer:
        """Return the loaded node, or end a stream with the reason why it cannot be loaded."""
        try:
            return await self._node()
        except UmpcError as error:
            await read(context)  # a client of gRPC loses the status of a call while it writes
            await context.abort(*status_of(error))

    async def _node(self) -> NodeServer:
        """Return the loaded node. Raises: an error that others may read."""
        async with self._loading:
            try:
                self._loaded = self._loaded or await self._load()
            except UmpcError as error:
                log.error("the node cannot be loaded: %s", error.message)
                raise public_error(error, self._identity.name) from error
            return self._loaded
