"""The options of commands that start a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from umpc.cli.paths import FOLDER
from umpc.logs import FORMATS, LEVELS

STUDIES = click.option(
    "--studies",
    type=click.IntRange(min=1),
    help="Stop after this number of studies; default: never.",
)
LISTEN = click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    help="Address to listen on, HOST:PORT; port 0 takes any free port.",
)
HUB = click.option(
    "--hub",
    metavar="NAME@HOST:PORT",
    help="Dial this hub and wait for calls there, instead of listening.",
)
IDENTITY = click.option(
    "--identity",
    "folder",
    type=FOLDER,
    required=True,
    help="Folder with ca.pem, cert.pem and key.pem; see `umpc ca`.",
)

LOG_LEVEL = click.option(
    "--log-level",
    "level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    envvar="UMPC_LOG_LEVEL",
    show_envvar=True,
    help="The least level of lines on standard error.",
)
LOG_FORMAT = click.option(
    "--log-format",
    "style",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    envvar="UMPC_LOG_FORMAT",
    show_envvar=True,
    help="Lines for people, or one JSON object a line for programs.",
)
METRICS = click.option(
    "--metrics",
    default="",
    envvar="UMPC_METRICS",
    show_envvar=True,
    help="Serve /metrics for Prometheus and /healthz on this local address, such as "
    "127.0.0.1:9464; default: no.",
)
TRACES = click.option(
    "--traces",
    default="",
    envvar="UMPC_TRACES",
    show_envvar=True,
    help="Send spans of studies to an OTLP collector on this local address, such as "
    "127.0.0.1:4318; needs the extra otel; default: no.",
)
CORES = click.option(
    "--cores",
    type=click.IntRange(min=1),
    help="The most cores of this machine that compute; default: all.",
)
COMPUTE = click.option(
    "--compute",
    metavar="dask://HOST:PORT",
    help="The dealer's Dask cluster computes in place of this machine; needs the extra cluster.",
)
COMPUTE_TLS = click.option(
    "--compute-tls",
    "compute_tls",
    type=FOLDER,
    help="Folder with ca.pem, cert.pem and key.pem of that cluster.",
)
LEASH = click.option("--while-stdin-open", "leash", is_flag=True, hidden=True)
"""End with the process that started this one. The demo's processes must not outlive it."""


@dataclass(frozen=True)
class Serving:
    """The options of a command's server, which has some of them."""

    level: str
    style: str
    metrics: str
    leash: bool
    studies: int | None = None
    folder: Path | None = None
    listen: str = ""
    hub: str | None = None
    traces: str = ""


Command = Callable[..., None]
Option = Callable[[Any], Any]


def serving_options(*own: Option) -> Callable[[Command], Command]:
    """A decorator: these options and those of every server, as one first argument `Serving`."""

    def decorate(command: Command) -> Command:
        def run(**given: Any) -> None:
            serving = {
                each.name: given.pop(each.name) for each in fields(Serving) if each.name in given
            }
            command(Serving(**serving), **given)

        found: Command = wraps(command)(run)
        options: tuple[Option, ...] = (*own, LOG_LEVEL, LOG_FORMAT, METRICS, LEASH)
        for option in reversed(options):
            found = option(found)
        return found

    return decorate


hub_options = serving_options(IDENTITY, LISTEN)
helper_options = serving_options(IDENTITY, LISTEN, HUB, STUDIES)
"""Options of a dealer, and of a process like it."""
node_options = serving_options(STUDIES, TRACES)
