"""Metrics, traces and health of a process.

All are off unless the administrator names a port of this machine. They hold no value of a
table, no number of records, and no name of a study, a field or a coordinator.

| file | what it is |
|---|---|
| `metrics.py` | the metrics: studies by outcome, budget, approvals, certificate |
| `traces.py` | spans of studies, attempts and steps, for OpenTelemetry |
| `endpoint.py` | the local port with `/metrics` and `/healthz` |
"""
