"""Bytes that are no message end their call with a status that names the caller, and few lines."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.system.conftest import Lab
from umpc.transport.connections import MOST_TOLD
from umpc.transport.identity import load_identity
from umpc.transport.status import CULPRIT
from umpc.transport.stream import connect
from umpc.transport.tls import grpc

BYTES = b"\xff\xff\xff\xff"
EMPTY = b""
"""A message of a stream with nothing in it."""
CALLS = 30
METHODS = {
    "coordinator": ("Node/Hello", "Node/Contact", "Node/Study", "Shuffler/Collect", "Hub/Status"),
    "node-2": ("Node/Peer", "Dealer/Deal", "Shuffler/Deliver", "Hub/Join"),
    "shuffler-1": ("Shuffler/Order",),
}
SERVERS = {"Node": "node-1", "Dealer": "dealer", "Shuffler": "shuffler-2", "Hub": "hub"}
STREAMS = ("Join", "Study", "Peer", "Deal", "Deliver")


async def ended(
    here: Lab, caller: str, server: str, method: str, calls: int, sent: bytes = BYTES
) -> set[tuple]:
    """Send bytes that are no message, in so many calls. Returns: the codes and culprits."""
    role = "coordinator" if caller == "coordinator" else caller.partition("-")[0]
    identity = load_identity(here.folder / caller, role)
    address = here.served[server].address
    channel = await connect(identity, server, server.partition("-")[0], address, 20)
    found = set()
    for _ in range(calls):
        try:
            if method.rpartition("/")[2] in STREAMS:
                call = channel.stream_stream(f"/umpc.v1.{method}")()
                await call.write(sent)
                await call.read()
                code, said = await call.code(), await call.trailing_metadata()
            else:
                await channel.unary_unary(f"/umpc.v1.{method}")(sent)
                code, said = grpc.StatusCode.OK, ()
        except grpc.aio.AioRpcError as error:
            code, said = error.code(), error.trailing_metadata()
        found.add((code, dict(said).get(CULPRIT)))
    await channel.close(None)
    return found


@pytest.mark.parametrize("hub", [False, True], ids=["direct", "behind a hub"])
def test_they_are_refused_by_name_after_the_role_and_with_few_lines(lab, hub):
    here = lab(2)
    if hub:
        here.served["hub"] = here.deployment.start_hub()
    here.start(shufflers=True)
    for caller, methods in METHODS.items():
        for method in methods:
            server = SERVERS[method.partition("/")[0]]
            if server not in here.served:
                continue
            found = asyncio.run(ended(here, caller, server, method, CALLS))
            assert found == {(grpc.StatusCode.INVALID_ARGUMENT, caller)}, method
    found = asyncio.run(ended(here, "coordinator", "node-1", "Node/Study", 1, EMPTY))
    assert found == {(grpc.StatusCode.INVALID_ARGUMENT, "coordinator")}
    found = asyncio.run(ended(here, "node-2", "node-1", "Node/Study", 1))
    assert {code for code, _ in found} == {grpc.StatusCode.PERMISSION_DENIED}
    for server in {"node-1", "dealer", "shuffler-2", "hub"} & here.served.keys():
        log = here.log(server)
        assert not re.search("Traceback|ERROR", log), log
        assert "bytes that are no message" in log
    lines = [line for line in here.log("node-1").splitlines() if "that are no message" in line]
    of_coordinator = [line for line in lines if "coordinator 'coordinator' called" in line]
    assert 0 < len(of_coordinator) <= 2 * MOST_TOLD  # a minute may begin in between
    assert here.run(name="after").code == 0
