"""`umpc node doctor` and the network: peers, the own address, and names that do not resolve."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.support.examined_site import LONG_AGO, Examined
from tests.support.ports import reserved_address
from umpc.cli.doctor import NamedPeer, check_network
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocol_version import PROTOCOL
from umpc.transport.authority import Authority
from umpc.transport.connections import bind, make_server
from umpc.transport.identity import load_identity
from umpc.transport.tls import rpc


@pytest.fixture
def site(tmp_path):
    return Examined(tmp_path)


class Greeter(rpc.NodeServicer):
    """A node that says its version and does nothing else."""

    def __init__(self, name, version):
        self.name, self.version = name, version

    async def Hello(self, request, context):
        return pb.HelloReply(name=self.name, role="node", version=self.version)


def test_peers_and_the_own_address_are_called(site):
    """South is well, east is older, and nobody is at west. North itself runs, too."""
    site.authority.issue("south", "node", site.folder / "south")
    site.authority.issue("east", "node", site.folder / "east")
    strangers = Authority.create(site.folder / "strangers", now=LONG_AGO)
    strangers.issue("stranger", "node", site.folder / "stranger")
    identities = {
        name: load_identity(site.folder / folder)
        for name, folder in (
            ("north", "site"),
            *((name, name) for name in ("south", "east", "stranger")),
        )
    }
    west = reserved_address()

    async def scenario():
        servers, at = [], {}
        for name, identity in identities.items():
            server = make_server(identity, {"/umpc.v1.Node/Hello": {"node"}})
            version = "0.1.0" if name == "east" else PROTOCOL
            rpc.add_NodeServicer_to_server(Greeter(name, version), server)
            at[name] = await bind(server, identity, "127.0.0.1:0")
            await server.start()
            servers.append(server)
        called = [
            *(NamedPeer("node", name, at[name]) for name in ("south", "east", "stranger")),
            NamedPeer("node", "west", west),
            NamedPeer("node", "south", at["east"]),
            NamedPeer("dealer", "south", at["south"]),
            NamedPeer("node", "south", "nowhere"),
        ]
        own = identities["north"]
        port = at["north"].rpartition(":")[2]
        try:
            return (
                await check_network(f"0.0.0.0:{port}", own, called),
                await check_network(at["south"], own, ()),
                await check_network(at["south"], None, ()),
                await check_network("127.0.0.1:0", own, ()),
                await check_network("192.0.2.1:7443", own, ()),
            )
        finally:
            for server in servers:
                await server.stop(0)

    found, other, unknown, free, foreign = asyncio.run(scenario())
    lines = list(map(str, found))
    for line, words in zip(
        lines,
        (
            "this node runs and listens there",
            "ok  peer: node 'south' at ",
            f"ok  peer version: node 'south' at {found[1].text.split()[3]} protocol {PROTOCOL}",
            "ok  peer: node 'east' at ",
            "!!  peer version: node 'east' speaks protocol '0.1.0'",
            "!!  peer: node 'stranger' at ",
            "connection refused: start it there",
            "is east.node.umpc, expected south.node.umpc",
            "is south.node.umpc, expected south.dealer.umpc",
            "address 'nowhere' is wrong",
            "--  clock: ",
        ),
        strict=True,
    ):
        assert words in line, (words, line)
    assert "our authority did not sign" in lines[5] and "umpc ca show" in lines[5]
    assert [type(each.error).__name__ for each in found if each.error] == [
        "VersionMismatch",
        "CertificateError",
        "PeerUnavailable",
        "CertificateError",
        "CertificateError",
        "ConfigError",
    ]
    assert other[0].mark == "!!" and "choose another port" in str(other[0])
    assert unknown[0].mark == "--" and "is in use" in str(unknown[0])
    assert free[0].mark == "--" and "peers need a fixed one" in str(free[0])
    assert foreign[0].mark == "!!" and "give an address of this machine" in str(foreign[0])


def test_the_first_error_gives_the_exit_code_and_a_name_must_resolve(site, monkeypatch):
    def unknown(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "unknown name")

    monkeypatch.setattr(socket, "create_connection", unknown)
    code, lines = site.red("--peer", "dealer:d=nowhere.invalid:7443", "--peer", "b=x.invalid:1")
    assert code == 53 and len(lines) == 2
    assert (
        "dealer 'd' at nowhere.invalid:7443" in lines[0]
        and "check the address and the DNS" in (lines[0])
    )
