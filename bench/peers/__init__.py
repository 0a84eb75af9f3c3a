"""umpc's figures in the units in which other systems for secure computation give theirs.

`make peers` runs it; docs/peers.md says how the others run the same job.

| file | what it is |
|---|---|
| `__main__.py` | `python -m bench.peers`: figures of the machine, of umpc, of peers at hand |
| `job.py` | the job: Kendall's sum over 9,042 cross pairs of fields of 8 bits |
| `machine.py` | how long this machine takes to make a record durable |
| `turns.py` | figures of turns that were taken in a round robin |
| `peers.py` | peers that run here: a Python with SPU |

The folder `programs` has the job as a program for each peer.
"""
