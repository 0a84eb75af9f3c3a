"""The node process: one per site, over its own table, with its own ledger.

| file | what it is |
|---|---|
| `server.py` | the gRPC server: access control, and the end of a study with its stream |
| `run/` | one study at this node: its steps, links, material and rounds |
| `links.py` | links between nodes: dialling and waiting; which processes this node reaches |
| `standing.py` | what stays in memory between studies: chains of transfers, prepared attempts |
| `starts.py` | how often each node has started: a second copy of a node is noticed |
| `linked_store.py` | a site's disk: studies of linked rows, both lists, its share of the table |
| `people_server.py` | an aggregator's calls: a study of people is opened, counted and added up |
| `people_store.py` | an aggregator's disk: studies of people, their rows, its share of the table |
| `spool.py` | material on disk, encrypted, that waits for a run |
| `shufflers.py` | the streams to a study's two shufflers |
| `budget/` | the privacy budget on disk |
| `backup/` | the site's files in one archive, and back: no charge is forgotten |
| `records.py` | the site's records: the study's columns of its table, as integers |
| `told_order.py` | the order of the records in a file, for the demo that started the node |
| `table/` | a table's file: its text, its columns, its numbers |
| `config.py` | the site's configuration file |
| `config_section.py` | one table of that file, checked value by value |
| `datasets.py` | the data sets of a node, the one that a study is about, and its admission |
| `template.py` | an example of the configuration, with every key |
| `policy.py` | the administrator's rules |
| `decision.py` | a study in one sentence, for the person who decides on it |
| `audit/` | the audit trail: who asked what, who decided, what was charged and left |
| `approvals.py` | studies that wait for a person's decision |
"""
