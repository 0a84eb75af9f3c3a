"""Protocols without edges between nodes, as a study has them: every node makes a message of its own records.

| file | `protocol` |
|---|---|
| `onemessage.py` | `bell-ldp`, `ghazi-ldp`, `bell-auc`; and which of all these a study has |
| `tworounds.py` | `ghazi-rounds`: a question, and a second message |
| `shuffling.py` | `ghazi-shuffle`: through two shufflers |
| `gopa.py` | `gopa`: noise that cancels between nodes |
| `curator.py` | `central`: a trusted curator |

The protocols themselves are in `umpc/dp/local` and `umpc/dp/central` and know no study; here they meet.
"""
