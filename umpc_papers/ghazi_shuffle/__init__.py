"""`ghazi-shuffle`: noisy counts through two shufflers, each of whom sees uniform numbers.

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object |
| `settings.py` | the settings of a study, and their rules |
| `messages.py` | the messages to the shufflers and from them |
| `inbox.py` | the frames of one message, in chunks |
| `mechanism.py` | noisy sums of vectors by split and mix |
| `split_mix.py` | shares, shuffling, and how many shares it takes |
| `mixing.py` | δ of messages that nobody can tell apart |
| `node.py` | a node's side: a message for two receivers |
| `shuffler.py` | a shuffler's side |
| `coordinator.py` | the coordinator's side: both heaps added up |
"""
