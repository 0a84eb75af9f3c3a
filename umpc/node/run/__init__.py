"""One study at this node, from its proposal to its release: read `study.py` from top to bottom.

| file | what it is |
|---|---|
| `study.py` | the run: one coroutine, whose lines are the steps of docs/protocol.md |
| `earlier.py` | an earlier run of the study: its release, its held attempt, what it prepared |
| `prepare.py` | before the data: seed, links, transfers and their chains, noise, material |
| `rounds.py` | the protocols' rounds, driven over links with the dealer's material |
| `chunks.py` | the chunks on their way: when, in which batches, computed where |
| `release.py` | the finished share: held, charged, sent; the answer; a former one is found |
| `context.py` | what a run needs of its process and its study: parts, threads, violations |
| `coordinator.py` | the messages with the study's coordinator |
| `link.py` | a peer: frames by their place, its mailbox; all links of a run |
| `material.py` | the dealer's material: asked for, read ahead up to a window, or on disk |

A value of a table goes this way: `study.py` reads it (`join`), `rounds.py` sends it under a mask,
`chunks.py` turns masked values into shares, `release.py` stores, charges and sends their noisy sum.
The mathematics is in the protocol's side (`umpc/protocols/base/node.py`).
"""
