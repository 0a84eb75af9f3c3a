"""A short call to another process: who is there, and which version of the protocol it speaks."""

from __future__ import annotations

from umpc.errors import UmpcError, VersionMismatch
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocol_version import PROTOCOL
from umpc.transport.identity import Identity
from umpc.transport.status import error_of
from umpc.transport.stream import CONNECT_SECONDS, connect
from umpc.transport.tls import AnyContext, Stub, dealer_stub, grpc, node_stub, shuffler_stub

STUBS: dict[str, Stub] = {
    "node": node_stub,
    "dealer": dealer_stub,
    "shuffler": shuffler_stub,
}
"""Role → the calls to a process of this role."""


async def greet(identity: Identity, role: str, name: str, address: str) -> str:
    """Return the protocol's version of the process at an address, which is also ours.

    Raises: PeerUnavailable, CertificateError, ConfigError; StepTimeout, PeerLost; VersionMismatch.
    """
    channel = await connect(identity, name, role, address, CONNECT_SECONDS)
    try:
        reply = await STUBS[role](channel).Hello(pb.HelloRequest(), timeout=CONNECT_SECONDS)
    except grpc.aio.AioRpcError as error:
        raise error_of(error, name, "hello") from error
    finally:
        await channel.close(None)
    version = str(reply.version)[:40]
    if version != PROTOCOL:
        raise VersionMismatch(
            f"{role} {name!r} speaks protocol {version!r}, {identity.role} {identity.name!r} "
            f"speaks protocol {PROTOCOL!r}; install versions of umpc with the same protocol, which "
            "`umpc --version` prints",
            culprit=name,
        )
    return version


async def greet_or_fail(identity: Identity, role: str, name: str, address: str) -> str | UmpcError:
    """Return the version as `greet` does, or the reason why there is none."""
    try:
        return await greet(identity, role, name, address)
    except UmpcError as error:
        return error


class Greeted:
    """A server that others ask who is there."""

    identity: Identity

    async def Hello(self, request: pb.HelloRequest, context: AnyContext) -> pb.HelloReply:
        """Say who is there."""
        return pb.HelloReply(name=self.identity.name, role=self.identity.role, version=PROTOCOL)
