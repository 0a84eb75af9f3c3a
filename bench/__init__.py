"""Measurements, printed and never asserted. `make bench` prints what a user waits for.

| file | what it measures |
|---|---|
| `__main__.py` | `python -m bench`: the targets, or named parts |
| `oblivious.py` | oblivious transfers a second and core |
| `coins.py` | a committee's noise: coins from transfers beside dealt ones |
| `garbling.py` | garbled AND gates a second and core |
| `grid.py` | all pairs by the grid, beside sampled pairs |
| `large.py` | tables of millions of records, and their sum in the clear |
| `rates.py` | the rates by which `backend = "auto"` chooses |
| `targets.py` | `make bench`: what a user waits for, beside its target |
| `without_dealer.py` | the grid without a dealer: bytes and seconds over cells and records |
| `network.py` | slow lines, beside the seconds that `umpc plan` predicts |
| `proxy.py` | a slow line in front of servers |
| `scaling.py` | growth over the size of E, nodes and records: tables, and pictures for README.md |
| `nodes.py` | 64 nodes |
| `consortium.py` | 10, 100 and 1,000 sites and 10^6 people: predicted, and as real processes |
| `members.py` | hundreds of members with one record each, in two processes that run many nodes |
| `simulated_study.py` | a study of pairs without its nodes: what each process sends and computes |
| `simulated.py` | 256 and 1,024 nodes, from the plan's own cost functions |
| `hub.py` | many nodes through a hub, beside direct links |
| `work.py` | processor seconds of each kind of work in a study with many nodes |
| `people.py` | people with one value each: expanding, dealing, messages a second, a whole study |
| `overlap.py` | how many people two sites share: the number, its interval, and seconds |
| `linked.py` | columns at two sites: 10^6 rows in 2^12 cells, phase by phase |
| `planned.py` | a run beside its plan: bytes and memory |
| `plan_widths.py` | the width of an interval as planned, beside the mean of simulated reports |
| `type_one.py` | how often a test rejects a true hypothesis, over simulated studies |
| `power.py` | how often a test rejects a false hypothesis: power curves |
| `coverage.py` | how often the first interval of a report holds the statistic |
| `counts.py` | how often intervals from a table of counts hold their value |
| `population.py` | how often intervals for a population hold its value |
| `clear_studies.py` | simulated studies in the clear, for the four files above |
| `order_patterns.py` | rank kernels over all sets of many tables at once |
| `timing.py` | what a clock learns about a node's noise, and what a draw costs |
| `timed_sessions.py` | whole sessions of real nodes, with the times at which messages arrive |
| `memory_site.py` | a site whose streams and ledger are in memory, for timed sessions |
| `guessing.py` | how well an event is guessed from times |
| `reading.py` | how a node reads a table of 10^7 rows, next to DuckDB alone |
| `profile.py` | `make profile`: where the time of a job goes |
| `steps.py` | `make profile`: the milliseconds of each step of a small job |
| `clocked.py` | `umpc` with clocks in it, for `profile.py` |
| `harness.py` | real processes for a benchmark |
| `jobs.py` | run jobs, and report those that fail |
| `kendall.py` | a study of Kendall's tau, for benchmarks in one process |
| `leaks.py` | memory and open descriptors of every process over many studies |
| `cluster_demo.py` | `make cluster-demo`: two sites' chunks on two clusters, and workers killed |
| `dask_sites.py` | Dask clusters on this machine, each with an authority of its own |
| `trail.py` | an audit trail of a million rows: seconds and memory to verify it |
| `limits.py` | this machine's AES limit |
| `table.py` | print tables, and figures beside their targets |
| `peers/` | `make peers`: a job that other systems can run, too |
| `pictures/` | pictures and CSV files of these measurements |
"""
