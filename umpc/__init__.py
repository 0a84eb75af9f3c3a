"""umpc: differentially private U-statistics over the records of several sites.

A U-statistic is an average of a kernel over pairs or k-tuples of records. In the main protocol the
sites evaluate it under secret sharing, add exact noise, and release only the noisy sums. Other
protocols randomise each record at its site, or trust a curator.

| module | what it is |
|---|---|
| `errors.py` | every failure: its class and its exit code |
| `logs.py` | the lines of a process's log, as text or as JSON |
| `failpoints.py` | named points at which a test makes a process fail |
| `simulation.py` | a whole study in one process, for tests, audits and predictions |
| `crypto/` | seeds and streams, rings, packing, zero shares, and protocols as generators |
| `ustat/` | the statistic: kernels, their analysis, edge sets, and evaluation in the clear |
| `dp/` | differential privacy: exact noise, its calibration, and the accounting of its cost |
| `study/` | the study document that all processes agree on, its messages, sizes and report |
| `mpc/` | evaluation of a kernel under secret sharing: comparison keys, garbled circuits |
| `protocols/` | the protocols that a study can name: for each, what its node and coordinator do |
| `node/` | the node: a site's process, with its table, policy, approvals and privacy budget |
| `coordinator/` | the process that proposes a study, leads the nodes, and adds up their shares |
| `dealer/` | the process that deals correlated randomness and sees no data |
| `shuffler/` | the process that mixes the messages of all nodes in the shuffled protocol |
| `planning/` | predictions before a study runs: its error, its time, and the alternatives |
| `proto/` | messages on the wire: protobuf bytes and the dataclasses for which they stand |
| `transport/` | gRPC over mutual TLS, shared by all processes |
| `cli/` | the `umpc` command |
"""

__version__ = "0.2.0"
