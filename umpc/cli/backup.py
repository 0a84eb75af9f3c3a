"""`umpc node backup` and `umpc node restore`: a site's files in one archive, and back."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.dataset_option import CONFIG, DATASET
from umpc.cli.paths import FILE

if TYPE_CHECKING:
    from umpc.node.backup.restoring import Statement

AMOUNT = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE]-?[0-9]{1,2})?|[0-9]{1,30}/[1-9][0-9]{0,29}"
ALL = "all"


@click.command()
@CONFIG
@DATASET
@click.option("--to", "target", type=FILE, required=True, help="The new file to write.")
@click.option("--keys", is_flag=True, help="Also the node's secret key and the ledger's key.")
def backup(config: Path, dataset: str | None, target: Path, keys: bool) -> None:
    """Write the site's files into one archive, also while the node runs.

    A site with several data sets makes one archive for each.

    It has the ledger, the audit trail, the approvals, node.toml and the certificates. It lacks the
    table, and without --keys the secret keys: key.pem, and the .key file beside the ledger. Keep
    those elsewhere, once. An archive has what the site released, and with --keys its identity, so
    keep it as you keep the table.

    The anchor is not in it. Keep that on another disk: a restore without it cannot know what was
    charged after the backup.

    \b
    umpc node backup --config node.toml --to /mnt/other/north-2026-03-01.tar
    """
    from umpc.node.backup.archive import back_up
    from umpc.node.config import load_node_config

    loaded = load_node_config(config, dataset, reads_table=False)
    manifest = back_up(loaded, target, keys=keys)
    secret = "with the secret keys" if keys else "without secret keys"
    names = ", ".join(sorted(manifest.files))
    click.echo(f"backed up: {target}, {secret}: {names}")
    click.echo(f"row {manifest.row}, hash {manifest.hash}")


@click.command()
@click.argument("archive", type=FILE)
@CONFIG
@click.option(
    "--charged-since",
    "epsilon",
    metavar="EPSILON|all",
    help="The sum of epsilon that was charged after the backup; with all, whatever was left counts "
    "as spent.",
)
@click.option(
    "--delta-since",
    "delta",
    metavar="DELTA",
    default="0",
    show_default=True,
    help="The sum of delta that was charged after the backup.",
)
def restore(archive: Path, config: Path, epsilon: str | None, delta: str) -> None:
    """Put a site's files back from a backup. Stop the node first, also on the old machine.

    A file that is at its place is kept. The command refuses a place with a ledger, an archive that
    was changed, and an anchor or audit trail of another history.

    If the last anchor is at its place and stands at the backup's last row, nothing was charged
    since. In any other case say what was charged, with --charged-since and --delta-since. The
    command names what the audit trail shows, and accepts no less. If you do not know, say all. A
    study of the backup is then still repeated at no cost, and a new one needs a larger epsilon
    under [budget].

    \b
    umpc node restore north-2026-03-01.tar --config node.toml
    umpc node restore north-2026-03-01.tar --config node.toml --charged-since 3/2
    umpc node restore north-2026-03-01.tar --config node.toml --charged-since all
    """
    from umpc.node.backup.restoring import restore as put_back

    done = put_back(archive, config, _statement(epsilon, delta))
    for path in done.written:
        click.echo(f"written: {path}")
    click.echo(f"known: {done.known}")
    click.echo(f"restored: {done.ledger}, {done.head}")
    click.echo(f"counts as charged since: epsilon {done.cost.epsilon}, delta {done.cost.delta}")
    for path in done.absent:
        click.echo(f"missing: {path}; put it there before the node starts")
    click.echo(
        "Check [policy] in node.toml, and repeat each rejection since the backup: accepted studies "
        "wait for a person again. Then run `umpc node doctor`"
    )


def _statement(epsilon: str | None, delta: str) -> Statement | None:
    """Return the administrator's statement, or None. Raises: click.BadParameter."""
    from umpc.node.backup.restoring import Statement

    if epsilon is None:
        return None
    if epsilon == ALL:
        return Statement(all_left=True)
    for option, text in (("--charged-since", epsilon), ("--delta-since", delta)):
        if not re.fullmatch(AMOUNT, text):
            raise click.BadParameter(
                f"a number of 0 or more was expected, like 0.5 or 3/2, and {text!r} came",
                param_hint=option,
            )
    return Statement(Fraction(epsilon), Fraction(delta))
