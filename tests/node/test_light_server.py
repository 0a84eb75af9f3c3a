"""A light node's calls: each waits for the loaded node, which is loaded once, or says why not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from umpc.errors import ConfigError
from umpc.node.light_server import LightServer
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocol_version import PROTOCOL
from umpc.transport.tls import grpc

ME = SimpleNamespace(name="north", role="node")


class Ended(Exception):
    """A call that was ended with a status."""


class Caller:
    """The server's end of a call, whose client sends one message."""

    def __init__(self):
        self.read_messages = 0

    async def read(self):
        self.read_messages += 1
        return pb.CoordinatorMessage()

    async def abort(self, code, text):
        raise Ended(code, text)


class Loaded:
    """A loaded node that answers with its own calls' names."""

    async def Contact(self, request, context):
        return "contact"

    async def Study(self, requests, context):
        context.served = "study"

    async def Peer(self, requests, context):
        context.served = "peer"


def test_a_node_is_loaded_once_for_all_calls_that_need_it():
    loads = []

    async def load():
        loads.append(1)
        await asyncio.sleep(0)
        return Loaded()

    async def scenario():
        light, study, peer = LightServer(ME, load), Caller(), Caller()
        hello = await light.Hello(pb.HelloRequest(), Caller())
        assert (hello.name, hello.role, hello.version) == ("north", "node", PROTOCOL)
        assert not loads
        calls = light.Study(None, study), light.Peer(None, peer), light.Contact(None, Caller())
        assert (await asyncio.gather(*calls))[-1] == "contact"
        assert (study.served, peer.served) == ("study", "peer") and len(loads) == 1

    asyncio.run(scenario())


def test_a_node_that_cannot_be_loaded_keeps_its_paths_to_itself_and_tries_again():
    found = [ConfigError("/etc/umpc/north.toml: a fault"), ConfigError("again"), Loaded()]

    async def load():
        first = found.pop(0)
        if isinstance(first, ConfigError):
            raise first
        return first

    async def scenario():
        light, study = LightServer(ME, load), Caller()
        with pytest.raises(Ended) as caught:
            await light.Study(None, study)
        code, text = caught.value.args
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert text.startswith("ConfigError: north: its configuration") and "/etc" not in text
        assert study.read_messages == 1, "gRPC loses a status while its client writes"
        with pytest.raises(Ended):
            await light.Contact(None, Caller())
        assert await light.Contact(None, Caller()) == "contact"

    asyncio.run(scenario())
