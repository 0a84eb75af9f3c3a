"""The node process: one per site, over its own table, with its own ledger.

| file | what it is |
|---|---|
| `session.py` | the sans-IO session: what the node says and computes at each step |
| `records.py` | the site's table, through DuckDB, into integers |
| `ledger.py` | the privacy budget: reserve, charge, release |
| `config.py` | the site's configuration file |
| `server.py` | the gRPC shell: one study from proposal to release |
| `peers.py` | the links to other nodes: rounds by key, repeated and missing frames |
"""
