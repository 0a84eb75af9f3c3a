"""Run the jobs of a benchmark. A job that fails loses its own figures, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.table import Figure, show_targets

Job = Callable[[], Iterable[Figure] | None]
"""Measures, prints its tables and returns its figures; None for a job without targets."""


class JobFailed(Exception):
    """A process of a benchmark failed. The message says why in one line."""


def figures_of(name: str, job: Job) -> list[Figure]:
    """Return the job's figures. If the job fails, return one figure that says why."""
    try:
        return list(job() or ())
    except (Exception, SystemExit) as error:
        return [Figure(name, "", "", False, reason_of(error))]


def reason_of(error: BaseException) -> str:
    """Return one line that says why a job failed."""
    lines = str(error).strip().splitlines()
    if isinstance(error, JobFailed):
        return lines[-1] if lines else "it gave no reason"
    said = f": {lines[0]}" if lines else ""
    return f"{type(error).__name__}{said}"


def run_parts(names: Sequence[str], parts: Mapping[str, Job]) -> int:
    """Run these parts, then print all targets in one table. Return the exit code.

    The exit code is 1 if a job failed, and 0 otherwise, also where a target is missed.
    """
    figures: list[Figure] = []
    for name in names:
        figures += figures_of(name, parts[name])
    show_targets(figures)
    return int(any(figure.failure for figure in figures))
