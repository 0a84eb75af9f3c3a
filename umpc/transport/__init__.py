"""gRPC between umpc's processes, over mutual TLS 1.3.

Certificates hold the name and the role of a process.

| file | what it is |
|---|---|
| `authority.py` | the consortium's certificate authority; a site's key and request |
| `certificates.py` | certificates, keys and requests, and how each is checked; revoked ones |
| `files.py` | small files: read with a limit, written whole or not at all |
| `revocation.py` | the authority's signed list of revoked certificates: read, signed, compared |
| `identity.py` | the identity of one process, renewed from its folder without a restart |
| `tls.py` | TLS 1.3 only: credentials, the peer that calls; the generated stubs |
| `connections.py` | connections and servers with limits, and the way to a peer |
| `addresses.py` | an address: its form, the proxy before it, whether it is free, what it shows |
| `diagnose.py` | a look at a peer: why it cannot be reached, in one sentence |
| `heartbeat.py` | the heartbeat of a connection: each end notices when the other one stops |
| `patience.py` | time limits that count only this process's time; work that nobody waits for |
| `status.py` | errors as gRPC statuses, and back |
| `stream.py` | one stream to a peer: open, read, write, time limit, loss, violation, end |
| `stream_reader.py` | the messages of a stream as they come, and why it ended |
| `dealer_answer.py` | the call by which a dealer's answer about an attempt is heard |
| `greeting.py` | a short call: who is there, and which version it runs |
| `blocking.py` | a call's messages for a thread, and words of the thread's progress |
| `people_door.py` | the public door of a dealer or an aggregator, and the device's end of it |
| `hub/` | calls through a hub, for processes that only dial out |

The package itself imports nothing, so `umpc.transport.authority` works without grpc. gRPC reads its
cipher list when it is first imported. Every module therefore imports grpc from this package:
`from umpc.transport.tls import grpc`.
"""
