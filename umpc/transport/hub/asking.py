"""The question to a hub who is connected to it."""

from __future__ import annotations

from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.channels import connect
from umpc.transport.hub.address import HubAddress
from umpc.transport.identity import Identity
from umpc.transport.services import grpc, hub_stub
from umpc.transport.status import error_of


async def ask_status(identity: Identity, hub: HubAddress, seconds: float) -> pb.HubStatusReply:
    """Return who is connected. Raises: PeerUnavailable, CertificateError, StepTimeout."""
    channel = await connect(identity, hub.name, "hub", hub.address, seconds)
    try:
        return await hub_stub(channel).Status(pb.HubStatusRequest(), timeout=seconds)
    except grpc.aio.AioRpcError as error:
        raise error_of(error, hub.name, "status", identity.name) from error
    finally:
        await channel.close(None)
