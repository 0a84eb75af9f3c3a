"""Evaluation under shares. Knows no network, disk, clock or hidden randomness: all of that comes in as arguments.

| file | what it is |
|---|---|
| `ring.py` | Z_{2^w}, and packing of narrow values |
| `prg.py` | seeds, streams, the fixed-key hash of GGM trees |
| `comparison.py` | the sign gate: distributed comparison keys |
| `plan.py` | from a kernel's normal form to wires, comparisons and terms |
| `masks.py` | masked wires and arithmetic on them |
| `material.py` | what the dealer deals for a chunk, and what owners expand from seeds |
| `dealing.py` | the dealer's computation for a chunk |
| `evaluation.py` | the two owners' computation for a chunk |
| `rounds.py` | protocols as generators, and the in-memory driver |
| `frames.py` | a message's place and size on the wire |
| `messages.py` | what coordinator and node say to each other |
| `attempt.py` | commit and reveal; everything that follows from the joint seed |
| `zero_shares.py` | pairwise masks of the final shares |
| `cost.py` | rounds and bytes, predicted |
"""
