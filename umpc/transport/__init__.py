"""How processes reach each other: gRPC over mutual TLS 1.3, name and role of both sides in the certificates.

| file | what it does | imports |
|---|---|---|
| `authority.py` | the consortium's certificate authority; a site's key, request, identity | cryptography |
| `tls.py` | switches TLS 1.2 off, credentials from an identity, `peer_of` a call | grpc |
| `channels.py` | connect and listen with limits, keepalive and an allow-list of roles | grpc |
| `diagnose.py` | why a peer cannot be reached, in one sentence | stdlib |

The package itself imports nothing, so `umpc.transport.authority` works without grpc. Whoever needs grpc takes
it from here (`from umpc.transport.tls import grpc`): gRPC reads its cipher list only when first imported.
"""
