"""The version of the protocol: what all processes of one study must have in common.

It is the number of the first umpc that spoke this protocol. A later package keeps it as long as its
processes understand those of the former package, and a study has the same bytes and the same hash.
Processes of different packages then run one study together, and a study that was released before an
upgrade is repeated after it at no cost.

Whoever changes a message, the order of messages, the meaning of a study's key, or a pseudorandom
stream that two processes share, changes this number. `tests/test_protocol_version.py` holds hashes
that then change too.
"""

PROTOCOL = "0.2.0"
