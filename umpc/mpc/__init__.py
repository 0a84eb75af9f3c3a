"""Evaluation under shares. Knows no network, disk, clock or hidden randomness: all of that comes in as arguments.

| file | what it is |
|---|---|
| `ring.py` | Z_{2^w}, and packing of narrow values |
| `prg.py` | seeds, streams, the fixed-key hash of GGM trees |
| `comparison.py` | the sign gate: distributed comparison keys |
| `tree.py`, `native.py` | its tree in numpy, or compiled if `native/` is installed |
| `plan.py` | what the owners of an edge do with it: places, bits, layers, sums |
| `compiler.py` | from kernels' normal forms to the plan of each pattern of owners |
| `literals.py` | a Boolean function in the literals that make it short |
| `tables.py` | comparing a number that three or more owners make |
| `masks.py` | masked wires and arithmetic on them |
| `material.py` | what the dealer deals for a chunk, and what owners expand from seeds |
| `dealing.py` | the dealer's computation for a chunk |
| `fields.py` | round 1: masked records |
| `evaluation.py` | the owners' computation for a chunk |
| `noise.py` | noise drawn under shares: coins that nobody knows |
| `toss.py` | … without a dealer |
| `circuits.py`, `arithmetic.py`, `weighted.py` | Boolean circuits from kernels, with few AND gates |
| `garbling.py`, `gates.py`, `schedule.py`, `outputs.py` | half-gates over batches of edges, additive shares as output |
| `pairs.py` | noise of each pair's value, inside its circuit |
| `cells.py` | one interface for how edges of several owners are evaluated: a node's part |
| `shared_cells.py` | … under masks that a dealer knows |
| `garbled_plan.py`, `garbled_cells.py` | … by garbled circuits between two nodes, without a dealer |
| `base_ot.py`, `correlated_ot.py`, `ot_products.py` | oblivious transfer, and what is made of it without a dealer |
| `rounds.py` | protocols as generators, and the in-memory driver |
| `mesh.py` | … of several parties whose messages differ from peer to peer |
| `frames.py` | a message's place and size on the wire |
| `messages.py` | what coordinator and node say to each other |
| `sizes.py` | how large an attempt is: what follows from the numbers of records |
| `attempt.py` | commit and reveal; everything that follows from the joint seed |
| `zero_shares.py` | pairwise masks of the final shares |
| `cost.py` | rounds and bytes, predicted |
"""
