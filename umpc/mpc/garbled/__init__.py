"""Garbled circuits for the edges of two owners, without a dealer.

| file | what it is |
|---|---|
| `circuits.py` | Boolean circuits of weighted sums, how they are built, and their outputs |
| `bit_sums.py` | numbers as weighted sums of bits |
| `bit_sum_gates.py` | the gates of comparisons, products and choices of such numbers |
| `kernel_to_circuit.py` | the lowering of kernel expressions to circuits |
| `pieces.py` | comparisons of the owners' own numbers, by pieces that both look up |
| `piece_tables.py` | the masked tables of such pieces |
| `garbling.py` | half-gates for batches of edges |
| `gates.py` | the gates as operations on arrays |
| `plan.py` | the public facts: circuit, chunks, messages on a link |
| `sides.py` | one node's side of one link |
| `cells.py` | one node's part in all its cells |
"""
