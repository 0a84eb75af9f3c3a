"""The grid: the sum over all sets, from one masked histogram (docs/protocol.md#the-grid).

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object, chosen by `backend = "grid"`, and the coordinator's side |
| `settings.py` | the settings of a study, and their rules |
| `coarse.py` | bins and levels: rules, words for people, the share of ties |
| `binding.py` | a study's grid, ring, noise, attempt and cost |
| `attempt.py` | the facts of one attempt, who signed its total, and the dealer's part |
| `masked_form.py` | masks; a sum from the total, and what the dealer deals for it |
| `node.py` | the node's side |
| `lookup_proof.py` | where nodes may lie: the proof that a total is a histogram, and its messages |
| `verified.py` | where nodes may lie: what all say and check, and the dealer's part |
| `evidence.py` | where nodes may lie: signed evidence of a lie, and a reader's check of it |
| `verified_node.py` | where nodes may lie: the node's side |
| `cross_terms.py` | without a dealer: the attempt, who chooses by how many bits, and messages |
| `node_without_dealer.py` | without a dealer: the node's side |
| `operators/` | a kernel as operators on a table of cells |
"""
