"""Where chunks of a study are computed: in this process, on its cores, or on a site's cluster.

Only pure tasks (`umpc/mpc/masked/tasks.py`) are given away. The process that gives one away keeps
the order, sends every message itself, and sends it once.

| file | what it is |
|---|---|
| `executor.py` | a place of computing: this thread, and threads of this process |
| `cluster.py` | a Dask cluster of the site, over mutual TLS |
| `place.py` | the place that a configuration names |
"""
