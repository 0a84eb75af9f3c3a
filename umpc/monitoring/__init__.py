"""Metrics and health of a process, for Prometheus and for probes.

Metrics are off unless the administrator names a port of this machine. They hold no value of a
table, no number of records, and no name of a study, a field or a coordinator.

| file | what it is |
|---|---|
| `metrics.py` | the metrics: studies by outcome, budget, approvals, certificate |
| `endpoint.py` | the local port with `/metrics` and `/healthz` |
| `grpc_health.py` | the standard health service of gRPC, on the process's own port |
"""
