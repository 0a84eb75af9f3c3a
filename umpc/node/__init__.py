"""The node process: one per site, over its own table, with its own ledger.

| file | what it is |
|---|---|
| `joining.py` | how all sessions begin: a commitment, everybody's, the opening |
| `session.py` | the sans-IO session: what the node says and computes at each step |
| `onemessage.py` | the session of a one-message protocol: the node's own records, randomised |
| `tworounds.py` | the same where a question follows, which is answered once |
| `gopa.py` | the session of a federated mean: noise shared with the other nodes |
| `kinds.py` | which session runs a study |
| `records.py` | the site's table, through DuckDB, into integers |
| `ledger.py` | the privacy budget on disk: reserve, charge, release |
| `ledgerfile.py` | the ledger's file: made, appended to, read, also beside a running node |
| `chain.py` | the ledger's rows: the account they add up to, and their hashes |
| `anchor.py` | the ledger's key, and the anchor that notices an older copy |
| `amounts.py` | which epsilon and delta a ledger takes, and its refusal |
| `config.py` | the site's configuration file |
| `template.py` | its example, with every key |
| `policy.py` | what the administrator allows, rule by rule |
| `approvals.py` | studies that wait for a person's decision |
| `run.py` | one study from proposal to release: the session's steps with their network and ledger |
| `work.py` | an attempt's links, material and rounds: make ready, go on with what was prepared, evaluate |
| `parking.py` | attempts that are prepared and wait for their run, each taken once |
| `spool.py` | their material on disk, encrypted, read once |
| `rounds.py` | the protocols' rounds, driven over links with the dealer's material |
| `tasks.py` | several tasks at once, of which the first failure counts |
| `server.py` | the gRPC shell: who may call, and the end of everything that a peer's end ends |
| `links.py` | where links between nodes are made |
| `peers.py` | a link: frames by their place, repeated and missing ones |
| `material.py` | the dealer's material, read ahead up to a window |
"""
