"""umpc: private U-statistics over records of several owners.

| module | what it is |
|---|---|
| `study` | the document that every process agrees on before anything happens |
| `studies.parts` | its fields, its participants, exact numbers as text |
| `studies.local` | what a study of a one-message protocol says |
| `agreement`, `onemessage` | what `dp` gives a study: noise and attempt; the papers' one-message protocols |
| `errors` | every failure: its class, its sentence, its exit code |
| `ustat` | the statistic: kernel expressions, their analysis, sampling of edges, the oracle in the clear |
| `mpc` | evaluation of a kernel under secret sharing |
| `dp` | exact noise and its calibration |
| `proto` | messages: bytes ⇄ dataclasses |
| `transport` | gRPC over mutual TLS 1.3, shared by the three shells |
| `node`, `dealer`, `coordinator` | one folder per process |
| `cli` | the `umpc` command |
"""

__version__ = "0.2.0"
