"""The Python interface. `import umpc` exports it, and loads it on first use.

| file | what it is |
|---|---|
| `in_memory.py` | `umpc.estimate`: a private statistic over data frames, in one process |
| `study.py` | `umpc.Study`: a study against real nodes, plain and asynchronous |
| `proposal.py` | `umpc.plan`: a study from a question, with the intervals that it will have |
| `consortium.py` | `umpc.local_consortium`: real processes on this machine |
| `result.py` | `umpc.Result`: a report with intervals, a test and a picture |
| `fields.py` | fields from bounds or from columns, in steps of their resolution |
| `entries.py` | the entries of a study file, from arguments; `umpc.kernel` |
| `description.py` | a study in words, before it runs |
| `progress.py` | a run's steps, what it will take, and the time left |

The commands in `umpc/cli` are made of these functions.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from umpc.api.consortium import LocalConsortium, local_consortium
    from umpc.api.entries import PythonKernel, kernel
    from umpc.api.in_memory import estimate
    from umpc.api.proposal import plan
    from umpc.api.result import Result
    from umpc.api.study import ProposedStudy as Study
    from umpc.ustat.tracing import maximum, minimum, select, sign

__all__ = [
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
]
_PLACES = {
    "LocalConsortium": "umpc.api.consortium",
    "PythonKernel": "umpc.api.entries",
    "Result": "umpc.api.result",
    "Study": "umpc.api.study",
    "estimate": "umpc.api.in_memory",
    "kernel": "umpc.api.entries",
    "local_consortium": "umpc.api.consortium",
    "maximum": "umpc.ustat.tracing",
    "minimum": "umpc.ustat.tracing",
    "plan": "umpc.api.proposal",
    "select": "umpc.ustat.tracing",
    "sign": "umpc.ustat.tracing",
}
_NAMES = {"Study": "ProposedStudy"}
"""Names that differ in their module."""


def __getattr__(name: str) -> Any:
    """Load a name's module when it is first asked for, so that commands load what they need."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'umpc.api' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), _NAMES.get(name, name))
