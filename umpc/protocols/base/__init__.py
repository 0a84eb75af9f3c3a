"""The base that all protocols share: the protocol object, and both sides of a study.

| file | what it holds |
|---|---|
| `protocol.py` | `StudyProtocol`: what every protocol answers |
| `promise.py` | the promise of a study in words, from its terms; whom its sites trust |
| `seed_agreement.py` | the steps by which a node joins an attempt |
| `node.py` | `NodeSide`: one node's part of one attempt; the parts that talk to others |
| `coordinator.py` | `CoordinatorSide`: the coordinator's part of one study; the total of vectors |
| `bins.py` | the bins of a field's values |
| `one_message_protocol.py` | the protocol object of such a protocol, and its coordinator's side |
| `one_message.py` | the messages of protocols in which a node talks to no other node; that node |
"""
