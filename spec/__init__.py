"""The protocol of umpc as a program that a cryptographer reads in an afternoon.

Plain Python: integers, lists and bytes. Nothing reads a network, a clock or a source of randomness:
it is an argument. A comment above a step has what the paper says there (docs/papers.md). AES, GCM,
HMAC, X25519, ECDSA, Ed25519 and the points of edwards25519 come from `cryptography` and `nacl`.

| file | what it specifies |
|---|---|
| `prg.py` | seeds, streams, orders that all nodes draw alike, packed integers, hashes |
| `joint_seed.py` | commit and reveal; what the nodes sign; the attempt's identity |
| `edges.py` | E: all sets of records, balanced pairs, uniform sets |
| `sharing.py` | fixed-point numbers, additive shares, products from what was made before |
| `dcf.py` | the comparison gate by distributed comparison functions |
| `masked_plan.py` | what the owners of a pair compute: two kernels |
| `masked_dealing.py` | the dealer's material for pairs, and what is expanded from seeds |
| `masked_pairs.py` | pairs under masks, by one-hot tables or by keys |
| `base_transfers.py` | oblivious transfers by curve points |
| `transfers.py` | their extension with its proofs, and products made of transfers |
| `garbled.py` | garbled pairs: half gates with additive outputs |
| `grid.py` | sums over all pairs by tables, with a dealer and without one |
| `verified_grid.py` | the grid when nodes lie |
| `verified_by_few.py` | the same, where t + 1 nodes check for all |
| `verified_forms.py` | what a node says of its table: a list, or bits |
| `verified_triples.py` | the same over triples |
| `verified_messages.py` | its digests, statements and challenges |
| `verified_checks.py` | the checks of its nodes |
| `linear_proof.py` | its proof of products |
| `people.py` | people with one value each: keys, two aggregators, the release |
| `linked.py` | columns at two sites: lists of rows, and shares of their histogram |
| `people_messages.py` | their messages: fetched secrets, boxes, receipts |
| `people_verified.py` | their total's check, where an aggregator may lie |
| `point_functions.py` | the keys of its dealer: point functions, rotated and added up |
| `overlap.py` | how many people two sites share |
| `counts.py` | tables of noisy counts |
| `field.py` | two fields, and polynomials by their values at roots of unity |
| `noise.py` | discrete Laplace: each node's own Polya, and the law of a committee's coins |
| `coins.py` | the committee's coins, by transfers |
| `checked_bits.py` | random bits that become numbers, of which seven in eight are opened |
| `zero_shares.py` | pairwise masks of the released shares |
| `sign_in.py` | who has signed in for a coordinator, and the studies of its certificate |
| `ledger.py` | a node's budget as a state machine: reserve, hold, charge, release, replay |
| `refused.py` | checks with names, and refusals |
| `cases/` | the vectors' inputs, and how they are written |
| `__main__.py` | writes the vectors |

Not specified: other kernels under masks; edges of two samples, by pairings, by triples, balanced
ones of three and more records; tables of pieces in garbled pairs; grids of triples where nobody
lies, of levels, or of no counts; other noise than discrete Laplace; dealt coins; chains of
channels; the dealer's checks; answers after the release; other protocols.
`python -m spec` writes `spec/vectors/*.json`. `tests/spec` has umpc compute, and refuse, the same.
"""
