"""People with one value each: their messages, and the list of their places (docs/people.md).

| file | what it holds |
|---|---|
| `device.py` | a person's device: it checks an invitation, sends one message, keeps receipts |
| `disk.py` | the folder in which a dealer or an aggregator keeps what it has |
| `linked.py` | linked rows of two sites: their lists, and what is signed of them |
| `messages.py` | secrets, boxes, receipts and signed lists: all cryptography of people |
| `places.py` | the key of each place, the file that lists them, and the tokens of people |
"""
