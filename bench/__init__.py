"""Measurements, printed; never asserted. `make bench` runs all of them and ends with every target in one table.

| file | what it measures |
|---|---|
| `gates.py` | sign gates: evaluation and key generation, as a share of the AES limit |
| `oblivious.py`, `garbling.py` | oblivious transfers, and garbled AND gates, a second and core |
| `bank.py` | the bank study over real processes: 2n pairs, prepared ahead, and without a dealer |
| `complete.py` | all pairs of the bank: exact, and the error at ε = 1 |
| `million.py` | a million records |
| `network.py`, `proxy.py` | slow lines, beside what `umpc plan` says |
| `scaling.py` | what grows with |E|, nodes, records: tables, and pictures for README.md |
| `nodes.py` | 64 nodes |
| `figures/` | `make figures`: the papers' figures and tables, each with its claim and whether it agrees |
| `baselines/` | `python -m bench.baselines`: baselines that no study runs, a table for each |
| `simulated.py`, `work.py` | 1,000 and 10,000 nodes, from the plan's own cost functions |
| `profile.py`, `clocked.py` | `make profile`: where the time of a job goes |
| `harness.py` | real processes for a benchmark |
| `limits.py` | this machine's AES limit, in the same run as everything else |
| `table.py` | how a figure is printed beside its target |
"""
