"""`ghazi-rounds`: a local protocol in which some records answer a question after a first look.

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object |
| `settings.py` | the settings of a study |
| `messages.py` | a node's two messages, and the question between them |
| `mechanism.py` | groups, randomisers and the estimate |
| `node.py` | a node's side: it answers one question |
| `coordinator.py` | the coordinator's side: it asks one question |
"""
