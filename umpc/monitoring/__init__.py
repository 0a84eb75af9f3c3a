"""Metrics and health of a process.

All are off unless the administrator names a port of this machine. They hold no value of a
table, no number of records, and no name of a study, a field or a coordinator.

| file | what it is |
|---|---|
| `metrics.py` | the metrics, and the local port that shows them and answers probes |
"""
