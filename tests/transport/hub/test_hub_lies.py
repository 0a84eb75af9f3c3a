"""A hub that lies: each lie is noticed with a typed error, and it reads names and sizes only."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from transport_echo import CALL, CHAT

from umpc.testing import lying

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import changed, echo_behind, hub_of, redirecting, run

from umpc.errors import CertificateError, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import session
from umpc.transport.stream import connect
from umpc.transport.tls import grpc


def lies():
    """Yield (name, what the hub makes of the fifth sealed envelope to the echo, error)."""

    held = []

    def reorder(envelope):
        held.append(envelope)
        return held[::-1] if len(held) == 2 else []

    yield "alter", lambda e: [changed(e, body=e.body[:-1] + bytes([e.body[-1] ^ 1]))], "altered"
    yield "number", lambda e: [changed(e, number=e.number + 1)], "altered"
    yield "kind", lambda e: [changed(e, kind=pb.HUB_RESUME)], "altered"
    yield "repeat", lambda e: [e, e], "second time"
    yield "reorder", reorder, "missing|out of its order"
    yield "drop", lambda e: [], "missing"


def test_every_lie_of_a_hub_is_noticed_with_a_typed_error_and_no_wrong_byte(site, limit):
    limit(session, PROBE_SECONDS=1.0)
    errors = []

    def noted(honest, of, error, **more):
        errors.append(error)
        return honest(of, error, **more)

    async def scenario():
        relay, a, b = site("relay", "hub"), site("a"), site("b")
        for name, lie, words in lies():
            async with hub_of(relay) as hub, echo_behind(hub, a):
                channel = await connect(b, "a", "node", hub.address, 5)
                chat = channel.stream_stream(CHAT)()
                seen = 0

                def mangle(envelope, lie=lie):
                    nonlocal seen
                    seen += envelope.kind == pb.HUB_SEALED and envelope.target.name == "a"
                    to_a = envelope.kind == pb.HUB_SEALED and envelope.target.name == "a"
                    return lie(envelope) if to_a and seen in (5, 6) else [envelope]

                hub.relay.mangle = mangle
                errors.clear()
                with pytest.raises(grpc.aio.AioRpcError):
                    for i in range(9):
                        await chat.write(bytes([i]))
                    for i in range(10):
                        assert await chat.read() == bytes([i]), name
                assert isinstance(errors[0], RemoteProtocolError), name
                assert errors[0].culprit == "relay", name
                assert re.search(words, errors[0].message), (name, errors[0].message)
                await channel.close()

    with lying("process", fail=noted):
        run(scenario())


def test_a_hub_that_redirects_sessions_is_noticed(site):
    async def scenario():
        relay, a, b, c = site("relay", "hub"), site("a"), site("b"), site("c")
        async with hub_of(relay) as hub, echo_behind(hub, a), echo_behind(hub, c) as other:
            hub.relay.mangle = redirecting("a", to="c")
            with pytest.raises(CertificateError, match="connected node 'c', expected node 'a'"):
                await connect(b, "a", "node", hub.address, 5)
            hub.relay.mangle = None
            channel = await connect(b, "a", "node", hub.address, 5)
            chat = channel.stream_stream(CHAT)()
            await chat.write(b"x")
            await chat.read()
            hub.relay.mangle = redirecting("a", to="c")
            await chat.write(b"y")
            with pytest.raises(grpc.aio.AioRpcError, match="connected node 'c'"):
                await chat.read()
            assert other.ran == []
            await channel.close()

    run(scenario())


def test_a_hub_reads_names_and_sizes_only(site):
    seen = []

    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")):
            hub.relay.mangle = lambda e: (seen.append(e.SerializeToString()), [e])[1]
            channel = await connect(site("b"), "a", "node", hub.address, 5)
            await channel.unary_unary(CALL)(b"a secret of the members", timeout=5)
            await channel.close()

    run(scenario())
    assert len(seen) > 3 and any(b"b.node" in each for each in seen)
    assert not any(b"secret" in each or CALL.encode() in each for each in seen)
