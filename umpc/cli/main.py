"""The root command. It turns every failure into one line on standard error and an exit code.

With --format json, one line more has the failure as a JSON object, for programs.

`umpc --version`: the versions; with --verbose also which compiled gate runs, and the libraries.
"""

from __future__ import annotations

import gc
import io
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

import click

from umpc import __version__
from umpc.cli.lazy import LazyCommand, LazyGroup
from umpc.errors import UmpcError
from umpc.protocol_version import PROTOCOL

INTERRUPTED = 130
NEW_OBJECTS = 10_000
CLICKS = re.compile("^Error: ", re.MULTILINE)
"""The beginning of click's own errors, which then begin as all others do."""
INSIDE_A_DEMO = "--inside-a-demo"
"""The demo's own `umpc study run` has this flag: its failures are read by the demo's person."""


OWN = {
    "demo": ("demo", "Run all parties on this machine, over one table."),
    "study": ("study", "Run, prepare or check a study."),
    "overlap": ("overlap", "Tell how many people two sites share."),
    "people": ("people", "Ask people for one value each, or answer."),
    "plan": ("plan", "Predict a study's errors, bytes and seconds."),
    "infer": ("infer", "Compute intervals and a p-value from a report."),
    "node": ("serve", "Run this site's node."),
    "approve": ("approve", "Decide on studies that wait for approval."),
    "audit": ("audit", "Show and verify the audit trail of a node."),
    "budget": ("budget", "Show a site's privacy budget."),
    "dealer": ("serve", "Run the dealer."),
    "hub": ("hub", "Run a hub, through which sites reach each other."),
    "table": ("omop", "Write the query of a site's table."),
    "kernels": ("kernels", "List the statistics, with formulas."),
    "enrol": ("enrol", "Get a certificate for a site."),
    "ca": ("ca", "Make and revoke certificates."),
}
"""Command → its file here, and its line in the list of commands."""
COMMANDS = {name: LazyCommand(f"umpc.cli.{file}", name, does) for name, (file, does) in OWN.items()}


LIBRARIES = (
    "numpy",
    "cryptography",
    "pynacl",
    "grpcio",
    "protobuf",
    "duckdb",
    "python-flint",
    "msgspec",
)
"""The libraries whose versions matter to results, to security, or to speed."""


def verbose_lines() -> Iterator[str]:
    """Yield one line for each part of this installation: Python, compiled gate, each library."""
    from umpc.native import status

    yield f"Python        {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield f"compiled gate {status()}"
    for name in LIBRARIES:
        yield f"{name:<13} {installed(name)}"


def installed(name: str) -> str:
    """A library's version; cryptography's also names the OpenSSL that it brings."""
    from importlib.metadata import PackageNotFoundError, version  # 2 MiB, for this option only

    try:
        found = version(name)
    except PackageNotFoundError:
        return "is not installed"
    if name == "cryptography":
        from cryptography.hazmat.backends.openssl.backend import backend

        return f"{found}, {backend.openssl_version_text()}"
    return found


def show_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the versions and end the command. `--verbose` has been read before."""
    if not wanted or context.resilient_parsing:
        return
    click.echo(f"umpc, version {__version__}, protocol {PROTOCOL}")
    if context.params.get("verbose"):
        for line in verbose_lines():
            click.echo(line)
    context.exit()


@click.group(cls=LazyGroup, own=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=show_version,
    help="Show the version and exit.",
)
@click.option(
    "--verbose",
    is_flag=True,
    is_eager=True,  # so that --version knows it, whichever comes first
    help="With --version: also which compiled gate runs, and the libraries' versions.",
)
def umpc(verbose: bool) -> None:
    """Compute statistics over pairs of records of several sites, without sharing the records.

    Each site runs a node over its own table. A study names a statistic. The nodes compute it
    under secret sharing, add noise for differential privacy, and reveal one noisy number.

    \b
    Try it on this machine:       umpc demo
    Join a consortium:            umpc enrol --help
    At each site, run a node:     umpc node start --config node.toml
    Approve studies at a site:    umpc approve list --config node.toml
    Elsewhere, run the dealer:    umpc dealer start --identity dealer --listen 0.0.0.0:7100
    Plan a study:                 umpc plan study.toml --records 300,200
    Run a study:                  umpc study run study.toml
    Ask more of its report:       umpc infer report.json --level 0.9
    Train a model:                umpc train train.toml --model model.json
    """
    if verbose:
        raise click.UsageError("--verbose needs --version; commands log more by UMPC_LOG_LEVEL")


def use_one_blas_thread() -> None:
    """Let numpy, which is not loaded yet, start no threads for matrices of real numbers.

    umpc has none that are large, and at the start these threads wait for work in a loop: 85 ms of
    the processor for each process on two cores. The user's own setting stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """Run the `umpc` command."""
    # modules leave no unused objects, and to look for them takes a tenth of a command's start
    gc.set_threshold(NEW_OBJECTS)
    use_one_blas_thread()
    try:
        umpc(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("error: interrupted", err=True)
        _end("Interrupted", "interrupted", INTERRUPTED)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(CLICKS.sub("error: ", shown.getvalue()), err=True, nl=False)
        _end(type(error).__name__, error.format_message(), error.exit_code)
    except UmpcError as error:
        if error.detail:
            click.echo(f"detail: {error.detail}", err=True)
        click.echo(f"error: {error.message}", err=True)
        more = {"culprit": error.culprit, "step": error.step, "detail": error.detail}
        _end(type(error).__name__, error.message, error.exit_code, **more)


def _end(kind: str, message: str, code: int, **more: str | None) -> NoReturn:
    """End with this exit code. Args: kind: the class of the error, as docs/exit_codes.md has it."""
    if wants_json(sys.argv[1:]):
        told = {key: text for key, text in more.items() if text}
        failure = {"error": kind, "message": message, **told, "exit_code": code}
        click.echo(json.dumps(failure, ensure_ascii=False), err=True)
    sys.exit(code)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a program reads what this command prints."""
    pairs = pairwise(arguments)
    asked = "--format=json" in arguments or ("--format", "json") in pairs
    return asked and INSIDE_A_DEMO not in arguments


if __name__ == "__main__":
    main()
