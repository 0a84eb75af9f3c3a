"""The root command. Every failure becomes one line on standard error and its own exit code."""

from __future__ import annotations

import importlib
import sys

import click

from umpc import __version__
from umpc.errors import UmpcError

INTERRUPTED = 130

COMMANDS = {
    "demo": ("umpc.cli.demo", "demo"),
    "study": ("umpc.cli.study", "study"),
    "plan": ("umpc.cli.plan", "plan"),
    "node": ("umpc.cli.serve", "node"),
    "approve": ("umpc.cli.approve", "approve"),
    "budget": ("umpc.cli.budget", "budget"),
    "dealer": ("umpc.cli.serve", "dealer"),
    "shuffler": ("umpc.cli.serve", "shuffler"),
    "kernels": ("umpc.cli.kernels", "kernels"),
    "ca": ("umpc.cli.ca", "ca"),
}


class LazyGroup(click.Group):
    """Loads a command's module when it is used, so that `umpc --help` answers at once."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name]
        return getattr(importlib.import_module(module), attribute)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="umpc")
def umpc() -> None:
    """Statistics over pairs of records that no one may see together.

    Each site runs a node over its own table. A study names a statistic, the nodes compute it under secret sharing, add
    noise for differential privacy, and one noisy number is revealed.

    \b
    Try it on this machine:      umpc demo
    Make certificates:           umpc ca --help
    At every site:               umpc node start --config node.toml
    Where a person must agree:   umpc approve list --config node.toml
    Beside the sites:            umpc dealer start --identity dealer --listen 0.0.0.0:7100
    Run a study:                 umpc study run study.toml
    """


def main() -> None:
    """Entry point of the `umpc` command."""
    try:
        umpc(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except UmpcError as error:
        if error.detail:
            click.echo(f"detail: {error.detail}", err=True)
        click.echo(f"error: {error.message}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
