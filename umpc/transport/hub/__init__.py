"""A member's side of a hub: every process dials out, and its calls go through one connection.

    study.toml      address = "hub:relay@hub.example.org:7443"
    node.toml       hub = {name = "relay", address = "hub.example.org:7443"}, no listen

`umpc.transport.stream.connect` returns a channel through the hub for such an address. Its calls
have the methods of gRPC's calls, so the sessions above are the same as over direct links.

| file | what it is |
|---|---|
| `sealing.py` | the keys of a session, and its sealed envelopes |
| `numbering.py` | numbered, acknowledged records: what is sent again, and what is refused |
| `session.py` | a session, opened by a handshake, sealed, numbered, resumed; and its one call |
| `connection.py` | this process's connection to a hub, which it dials again; who is connected |
| `link.py` | the sessions of this process at one hub, and their turns to send |
| `routes.py` | the way to another process: a channel with its calls, for the generated stubs |
| `serving.py` | a server for the generated servicers |

The hub itself is `umpc.hub`.
"""
