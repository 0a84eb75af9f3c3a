"""Inputs of the vectors, and functions that only vectors call: data, and no protocol.

Each file has the vectors of the file of the specification that has the same name.

| file | vectors of |
|---|---|
| `prg.py` | seeds, streams, packed integers |
| `joint_seed.py` | what is agreed on and signed |
| `edges.py` | E |
| `sharing.py` | numbers, and ANDs of shared bits |
| `dcf.py` | the comparison gate |
| `masked_pairs.py` | pairs under masks |
| `base_transfers.py` | transfers by curve points |
| `transfers.py` | channels, and products over them |
| `garbled.py` | garbled pairs |
| `grid.py` | masked tables, and inner products by transfers |
| `verified_grid.py` | the verified grid of three nodes, and lies |
| `verified_by_few.py` | two verifiers and a node that does not check, and lies |
| `verified_forms.py` | nodes that send bits, and lies |
| `verified_triples.py` | the same over triples |
| `linked.py` | five rows of two sites |
| `people.py` | six people over twelve cells, and lies |
| `people_verified.py` | their total's check, and lies of an aggregator |
| `point_functions.py` | point keys, rotated and added up |
| `overlap.py` | two sites that share two people or none, and bytes that are no point |
| `counts.py` | tables over one to three axes, with a tree and without; draws |
| `noise.py` | draws from seeded streams, and thresholds |
| `coins.py` | tosses of two and three members |
| `sign_in.py` | certificates that list studies |
| `zero_shares.py` | masks that cancel |
| `ledger.py` | lives of ledgers |
| `vectors.py` | (none: how vectors are written and read) |
"""
