"""umpc: differentially private U-statistics over the records of several sites.

A U-statistic is an average of a kernel over pairs or k-tuples of records. In the main protocol the
sites evaluate it under secret sharing, add exact noise, and release only the noisy sums. Protocols
of other packages come through entry points (`protocols/registry.py`).

| module | what it is |
|---|---|
| `errors.py` | every failure: its class and its exit code |
| `protocol_version.py` | the version that all processes of a study must share |
| `logs.py` | the lines of a process's log, as text or as JSON |
| `local_server.py` | a small HTTP server in threads of this process |
| `decoding.py` | values of a document as structs, in one thread at a time |
| `text_file.py` | small files of text that a person names: read them, or say why not |
| `failpoints.py` | named points at which a test makes a process fail |
| `testing.py` | checks taken out and steps replaced by name, for tests that show their power |
| `edges_in_memory.py` | the nodes of a study in one memory, which evaluate edges together |
| `simulation.py` | a whole study in one process, for tests, audits and predictions |
| `crypto/` | seeds and streams, rings, packing, zero shares, and protocols as generators |
| `ustat/` | the statistic: kernels, their analysis, edge sets, and evaluation in the clear |
| `dp/` | differential privacy: exact noise, its calibration, and the accounting of its cost |
| `study/` | the study document that all processes agree on, its messages, sizes and report |
| `mpc/` | evaluation of a kernel under shares: with a dealer's masks, or without a dealer |
| `compute/` | where chunks are computed: this thread, all cores, or a site's cluster |
| `native/` | the compiled code: it loads the library and chooses the instruction set |
| `people/` | people with one value each: their messages, and the list of their places |
| `people_page/` | the page on which people answer in a browser, and the relay of their messages |
| `protocols/` | the protocols that a study can name: for each, what its node and coordinator do |
| `node/` | the node: a site's process, with its table, policy, approvals and privacy budget |
| `coordinator/` | the process that proposes a study, leads the nodes, and adds up their shares |
| `dealer/` | the process that deals correlated randomness and sees no data |
| `hub/` | the relay for processes that only dial out; it reads and changes nothing |
| `planning/` | predictions before a study runs: its error, its time, and the alternatives |
| `proto/` | messages on the wire: protobuf bytes and the dataclasses for which they stand |
| `enrolment/` | a site gets its certificate by an invitation |
| `transport/` | gRPC over mutual TLS, shared by all processes |
| `approval_page/` | a node's page for the person who accepts and refuses studies |
| `monitoring/` | metrics and health of a process |
| `counts/` | curves, quantiles, tables and tests from a released table of counts |
| `inference/` | intervals for the population and p-values, from a report alone |
| `reporting/` | a report as a page, a picture, and JSON with a schema |
| `deployment/` | processes of a whole study on this machine, for the demo and from Python |
| `api/` | the Python interface, of which the commands are made |
| `cli/` | the `umpc` command |

From Python, `umpc.estimate`, `umpc.Study`, `umpc.local_consortium`, `umpc.kernel` and `umpc.Result`
are what a statistician needs. They are loaded on first use, so that a node's `import umpc` stays
light (PEP 562). A type checker sees their types in `umpc.api`.
"""

from typing import Any

__version__ = "0.2.0"

_EXPORTED = (
    "LocalConsortium",
    "PythonKernel",
    "Result",
    "Study",
    "estimate",
    "kernel",
    "local_consortium",
    "maximum",
    "minimum",
    "plan",
    "select",
    "sign",
)
__all__ = ["__version__", "errors", *_EXPORTED]


def __getattr__(name: str) -> Any:
    """Load the Python interface, or the module of errors, when it is first asked for."""
    from importlib import import_module

    if name == "errors":
        return import_module("umpc.errors")
    if name in _EXPORTED:
        return getattr(import_module("umpc.api"), name)
    raise AttributeError(f"module 'umpc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
