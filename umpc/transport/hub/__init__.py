"""A member's side of a hub: every process dials out, and its calls go through one connection.

    study.toml      address = "hub:relay@hub.example.org:7443"
    node.toml       hub = {name = "relay", address = "hub.example.org:7443"}, no listen

`umpc.transport.hub.routes.connect` returns a channel through the hub for such an address. Its calls
have the methods of gRPC's calls, so the sessions above are the same as over direct links.

| file | what it is |
|---|---|
| `address.py` | the address of a process behind a hub |
| `sealing.py` | the keys of a session, and its sealed envelopes |
| `numbering.py` | numbered, acknowledged records: what is sent again, and what is refused |
| `sealed_end.py` | one end of a session: opened by a handshake, sealed, numbered, resumed |
| `session.py` | a session with the one call that it carries |
| `connection.py` | this process's connection to a hub, which it dials again when it breaks |
| `link.py` | the sessions of this process at one hub, and their turns to send |
| `routes.py` | the hubs at which this process is, and the way to another process |
| `batches.py` | several frames in one message |
| `channel.py` | a channel with its calls, for the generated stubs |
| `asking.py` | the question who is connected |
| `serving.py` | a server for the generated servicers |

The hub itself is `umpc.hub`.
"""
