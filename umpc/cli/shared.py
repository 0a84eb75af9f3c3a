"""The options --config and --dataset of the commands of a site's administrator.

The types of options and arguments that name a file or a folder.

Texts that commands print: a report as a table or as JSON, and columns of text.

Every table of a command goes to `console`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from umpc.errors import ConfigError
from umpc.text_file import write_text

if TYPE_CHECKING:
    from rich.console import Console

    from umpc.coordinator.conductor import Preparation
    from umpc.node.approvals import Approvals
    from umpc.node.budget.ledger_place import Place
    from umpc.node.budget.ledgerfile import Snapshot
    from umpc.node.config import NodeConfig
    from umpc.study.document import Study
    from umpc.study.report import Report


Option = Callable[[Any], Any]


class _Named(click.Path):
    """A path that, where something is there, must be a file or must be a folder.

    Args: is_folder: which of the two.
    """

    def __init__(self, *, is_folder: bool) -> None:
        super().__init__(
            file_okay=not is_folder,
            dir_okay=is_folder,
            readable=False,  # whoever reads it says more than click does
            path_type=Path,
        )

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path. Raises: click.BadParameter, where the other one of the two is there."""
        if self.dir_okay and os.path.isfile(value):
            self.fail(f"a folder was expected, and {value} is a file. Correct the path", param, ctx)
        if self.file_okay and os.path.isdir(value):
            self.fail(
                f"a file was expected, and {value} is a folder. Name a file in it", param, ctx
            )
        return super().convert(value, param, ctx)


FILE = _Named(is_folder=False)
FOLDER = _Named(is_folder=True)


@contextmanager
def asking(options: str, what: str = "an answer") -> Iterator[None]:
    """Ask a person. Raises: UsageError that names the options, if nobody is there."""
    try:
        yield
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        raise click.UsageError(
            f"{what} was expected on standard input, and nobody is there: give {options}"
        ) from None


# --- options of commands at a site ----------------------------------------------------------------


CONFIG = click.option(
    "--config",
    type=FILE,
    required=True,
    help="The node's TOML file.",
)
DATASET = click.option(
    "--dataset",
    metavar="NAME",
    help="The data set that is meant, where node.toml has several.",
)


def of_dataset(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command --config and --dataset, and as its first argument what they name."""

    @wraps(command)
    def run(config: Path, dataset: str | None, **given: Any) -> None:
        from umpc.node.config import load_node_config

        command(load_node_config(config, dataset, reads_table=False), **given)

    found: Callable[..., None] = CONFIG(DATASET(run))
    return found


def configs_of(config: Path, dataset: str | None) -> tuple[NodeConfig, ...]:
    """Return the named data set of a node's file, or all without a name. Raises: ConfigError."""
    from umpc.node.config import choose_dataset, load_datasets

    found = load_datasets(config, reads_table=False)
    return found if dataset is None else (choose_dataset(found, dataset),)


def approvals_of(config: NodeConfig) -> Approvals:
    """The decisions on studies at a data set."""
    from umpc.node.approvals import Approvals, approvals_beside

    return Approvals(approvals_beside(config.ledger))


def place_of(config: NodeConfig) -> Place:
    """Where the ledger of a data set is, with its anchor and its key."""
    from umpc.node.budget.ledger_place import Place

    return Place.of(config.ledger, config.anchor)


def has_ledger(config: NodeConfig) -> bool:
    """Whether the node has made the ledger of a data set, at its first start."""
    return place_of(config).ledger.exists()


def read_ledger(config: NodeConfig) -> Snapshot:
    """Read the ledger of a data set beside a node that may run. Raises: LedgerError."""
    from umpc.node.budget.ledgerfile import read_beside

    return read_beside(place_of(config), composition=config.composition)


# --- reports, and what is printed -----------------------------------------------------------------


Extra = Mapping[str, float | None]
"""Values that only the demo knows: exact, exact_over_edges, and quantised where there are bins."""


TWO_CLASSES = (
    "takes FIRST+SECOND per node, as 180+120,150+150: the records of the class that should score "
    "higher, and those of the other class."
)
"""How --records is written for a study of two classes."""


def format_option(usual: str, other: str, text: str) -> Option:
    """--format with two choices, of which the first is usual."""
    kind = click.Choice([usual, other])
    return click.option("--format", "style", type=kind, default=usual, show_default=True, help=text)


FORMAT = format_option("table", "json", "A table for people, or one JSON object for programs.")
HTML = click.option(
    "--html",
    "page",
    type=FILE,
    help="Also write the report as one HTML file that needs no network.",
)


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text as columns, each as wide as its widest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def console(usual: int = 110) -> Console:
    """The terminal; where output goes elsewhere, as wide as COLUMNS says, or as usual."""
    from rich.console import Console

    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(width=None if is_known else usual)


def print_report(
    report: Report,
    style: str,
    extra: Extra | None = None,
    *,
    page: Path | None = None,
) -> None:
    """Print the report: a table for people, or one JSON object for programs (style "json").

    Args: page: a file for the report as HTML. Raises: ConfigError if it cannot be written.
    """
    known = extra or {}
    if style == "json":
        from umpc.reporting.json_document import document

        print(json.dumps(document(report, known)))
    else:
        _print_table(report, known)
    if page:
        from umpc.reporting import page as html

        write_text(page, html.page(report), "what is printed above", ConfigError)


def _print_table(report: Report, extra: Extra) -> None:
    """Print the report as a table for people."""
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from umpc.reporting.rows import table_rows, title_of
    from umpc.text_file import printable

    title = escape(printable(title_of(report)))
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold", overflow="fold")
    table.add_column(justify="right", overflow="fold")
    table.add_column(overflow="fold")
    for row in table_rows(report, extra):
        table.add_row(*(Text(printable(cell)) for cell in row))  # no markup: a study names fields
    console().print(table)


def print_preparation(study: Study, preparation: Preparation, style: str) -> None:
    """Print how many bytes wait at each node, and until when.

    The style is as in `print_report`; for people it is one line.
    """
    until = datetime.now().astimezone() + timedelta(seconds=preparation.seconds)
    sizes = preparation.bytes_by_node
    if style == "json":
        facts = {"study": study.name, "study_hash": study.hash.hex(), "bytes_by_node": sizes}
        print(json.dumps({**facts, "until": until.isoformat(timespec="seconds")}))
        return
    where = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    print(
        f"study {study.name!r} is prepared: {sum(sizes.values()):,} bytes wait until "
        f"{until:%Y-%m-%d %H:%M} ({where}); epsilon {study.epsilon} is reserved"
    )
    print("the run will be over the records that the sites' tables have now, and no later ones")
