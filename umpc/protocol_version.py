"""The version of the protocol: what all processes of one study must have in common.

It is the number of the first umpc that spoke this protocol. A later package keeps it as long as its
processes understand those of the former package. Processes of different packages then run one study
together. A process of another version is refused, by the proposal and by *Hello*, which carry it.

Whoever changes a message, the order of messages, or a pseudorandom stream that two processes
share, raises this number. A study's identity does not depend on it (`umpc/study/document.py`), so a
study that was released before an upgrade is repeated after it at no cost.
`tests/test_protocol_version.py` holds identities that never change. A key of a study that gets
another meaning needs another tag.
"""

PROTOCOL = "0.4.0"
