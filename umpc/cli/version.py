"""`umpc --version`: the versions; with --verbose also which sign gate runs, and the libraries."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import click

from umpc import __version__
from umpc.protocol_version import PROTOCOL

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
    """Yield one line for each part of this installation: Python, the sign gate, each library."""
    from umpc.native import status

    yield f"Python        {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield f"sign gate     {status()}"
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
