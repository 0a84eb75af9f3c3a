"""Evaluation under shares, with no network, disk, clock or hidden randomness.

Inputs, material, keys and seeds come in as arguments.

| folder | what it is |
|---|---|
| `masked/` | evaluation under masks that a dealer knows, for any number of owners |
| `fss/` | function secret sharing: the tree of comparison keys and point keys, and point keys |
| `garbled/` | garbled circuits for the edges of two owners, without a dealer |
| `triples/` | Boolean triples for edges of any number of owners, without a dealer |
| `transfers/` | oblivious transfers, and what is made of them without a dealer |

| file | what it is |
|---|---|
| `arrays.py` | the types of numpy arrays |
| `chunks.py` | a chunk of edges, and what the plans of every backend say about it |
| `attempt.py` | E, the plans, and which nodes meet: all that follows from the joint seed |
| `cells.py` | a node's part in its cells: the base of every backend's |
| `backends.py` | the backend of a study, and the cost of an attempt |
"""
