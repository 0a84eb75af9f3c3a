"""The hub: a relay to which all members of a consortium dial, and which opens nothing.

| file | what it is |
|---|---|
| `relay.py` | who is connected, where an envelope goes, and how much may wait; it has no network |
| `server.py` | the gRPC server around it |

The members' side is `umpc.transport.hub`.
"""
