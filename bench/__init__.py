"""Measurements, printed; never asserted. `make bench` runs all of them.

| file | what it measures |
|---|---|
| `limits.py` | this machine's AES limit, in the same run as everything else |
| `gates.py` | sign gates: evaluation and key generation, as a share of the AES limit |
| `bank.py` | the bank study over real processes, with and without a dealer: time, bytes, memory |
| `table.py` | how a figure is printed beside its target |
"""
