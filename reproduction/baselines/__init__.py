"""Baselines of the papers that no study runs.

`python -m reproduction.baselines` prints what each gives.

| file | what it is |
|---|---|
| `__main__.py` | the command: one small table for each baseline |
| `error_tables.py` | tables of predicted and measured errors |
| `privacy_tables.py` | tables of epsilons: colluding nodes, secret batches, composed releases |
| `cost_table.py` | the table of bytes and operations |
| `gain_table.py` | the table of where a curator's mechanisms gain over Laplace noise |
| `bins_table.py` | the table of where bins at private quantiles gain over equal ones |
| `gopa.py` | a federated mean with noise that cancels between neighbours of a graph |
| `triangles.py` | a private share of triangles in a graph |
| `dpsgd.py` | a private linear ranking, by gradient descent |
| `ranking.py` | a command that learns one from the bank data by a trusted curator |
| `amplification.py` | the gain of secret batches, which `dpsgd.py` calibrates by |
| `textbook.py` | Gaussian noise, randomised response, a local mean, the exponential mechanism |
| `collusion.py` | the epsilon that is left if fewer nodes are honest than assumed |
| `accounting.py` | the cost of several releases together, by four theorems |
| `events.py` | releases as data, for the accountant |
| `curves.py` | Rényi curves of events, for the accountant |
| `losses.py` | privacy loss distributions, for the accountant |
| `coins.py` | coins of odds exp(-fraction), and the discrete Laplace variable made of them |
| `inversion.py` | the former draw of a Polya variable, whose time tells the value |
| `rejection.py` | the former draws of Poisson and discrete Gaussian variables, likewise |
| `cost.py` | bytes, rounds and operations of the central protocols |
"""
