"""`umpc train`: a linear model by private gradients of a pairwise loss."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from umpc.cli.shared import FILE, FOLDER
from umpc.errors import ConfigError
from umpc.text_file import check_writable

if TYPE_CHECKING:
    from umpc_papers.training.trainfile import TrainFile
    from umpc_papers.training.training import Model, PublicTable, StepResult

LOSSES = ("auc_hinge", "contrastive")
DEMO_ONLY = ("csv_file", "fields", "label", "keep")
"""Options that only the demo has."""


@click.command()
@click.argument("file", type=FILE, required=False)
@click.option("--model", type=FILE, required=True, help="Write the model to this JSON file.")
@click.option(
    "--evaluate",
    type=FILE,
    help="With FILE: a CSV table of public records, on which every step's AUC is computed.",
)
@click.option("--csv", "csv_file", type=FILE, help="Without FILE: the demo's table.")
@click.option("--delimiter", help="The tables' separator; default: found, as a node does.")
@click.option("--fields", help="The model's columns, separated by commas.")
@click.option("--label", metavar="COLUMN=FIRST", help="The label, and its first class.")
@click.option("--nodes", type=click.IntRange(1, 64), default=4, show_default=True)
@click.option("--loss", type=click.Choice(LOSSES), default=LOSSES[0], show_default=True)
@click.option("--epsilon", default="3", show_default=True, help="Privacy of all steps together.")
@click.option("--delta", default="1e-6", show_default=True, help="δ of all steps together.")
@click.option("--steps", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--rate", default="0.3", show_default=True, help="The length of the first step.")
@click.option("--margin", default="1", show_default=True, help="The margin of the loss.")
@click.option("--clip", default="3", show_default=True, help="The length of clipped records.")
@click.option(
    "--patience",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Stop after so many gradients in a row that the noise hides; 0 never stops.",
)
@click.option("--edges", default="2n", show_default=True, help="The pairs of each step.")
@click.option(
    "--max-colluding",
    type=click.IntRange(min=0),
    help="The number of nodes that may collude. The default is all but one.",
)
@click.option("--keep", type=FOLDER, help="Keep the demo's files.")
def train(file: Path | None, model: Path, **given: Any) -> None:
    """Train a linear model on pairs of records of several sites.

    Every step is a study: the nodes compute the gradient over fresh pairs under secret sharing,
    and add noise for the whole vector. The weights of each step are public. Epsilon and delta are
    for all steps together; each node charges them once, with the first step.

    With FILE, a train.toml, it runs against the nodes that the file names. Run it again with the
    same name, and it goes on where it ended. Without FILE it is a demo: a table is split over
    nodes on this machine.

    An AUC is computed on public records only, so it costs no epsilon: those of --evaluate, or
    every fourth row, which the demo gives to no node. The demo takes its bounds, centres and scales
    from these.

    \b
    umpc train --csv bank.csv --delimiter ';' --label y=yes \\
      --fields age,balance,day,duration,campaign,pdays,previous --model model.json
    umpc train train.toml --evaluate public.csv --model model.json
    """
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    if model.exists():
        raise ConfigError(f"{model} exists already; give --model the name of a new file")
    check_writable(model, "the model", ConfigError)
    if file is None:
        if given["evaluate"] is not None:
            raise ConfigError(
                "--evaluate goes with FILE; the demo keeps rows of its own table back"
            )
        from umpc_papers.training.demo import run_demo

        trained, reference = run_demo(given, lambda step: _tell(step, given["steps"]))
    else:
        trained, reference = _consortium(file, given), None
    trained.write(model)
    _end(trained, reference, model)


def _consortium(file: Path, given: dict[str, Any]) -> Model:
    """The training of a file, against its nodes."""
    from umpc_papers.training.command_run import lead
    from umpc_papers.training.trainfile import load_train_file

    for key in DEMO_ONLY:
        if given[key] is not None:
            raise ConfigError(f"--{key.split('_')[0]} is for the demo, which has no FILE")
    entries = load_train_file(file)
    public = _public_table(entries, given["evaluate"], given["delimiter"])
    return lead(entries, lambda step: _tell(step, entries.entries.steps), public)


def _public_table(file: TrainFile, path: Path | None, delimiter: str | None) -> PublicTable | None:
    if path is None:
        return None
    from umpc.cli.table import read_csv
    from umpc_papers.training.command_run import public_table

    label = file.label
    names = [each.name for each in file.entries.fields]
    return public_table(read_csv(path, delimiter, names), label.name, (label.categories or [""])[0])


def _tell(result: StepResult, steps: int) -> None:
    """One line for a step."""
    auc = "" if result.auc is None else f"AUC {result.auc:.4f}, "
    agrees = "as predicted" if result.bytes == result.bytes_predicted else "not as predicted"
    traffic = (
        "stored, nothing charged"
        if result.replayed
        else (
            f"{result.pairs:,} pairs, {result.bytes / 1e6:.2f} MB {agrees}, {result.seconds:.1f} s"
        )
    )
    click.echo(
        f"step {result.step} of {steps}: {auc}gradient {result.gradient:.3f} with noise of "
        f"{result.noise:.3f}, epsilon of the steps so far {result.epsilon:.3g}; {traffic}"
    )


def _end(model: Model, reference: float | None, path: Path) -> None:
    """The end of the training."""
    if model.stopped_early:
        click.echo(
            f"stopped after {model.steps_done} of {model.steps_paid} steps: the noise hides the "
            "gradient"
        )
    if model.auc_on:
        click.echo(f"every AUC is on {model.auc_on}, which no node has, and costs no epsilon")
    click.echo(
        f"every node charged epsilon {model.epsilon:g} and delta {model.delta:g}, for "
        f"{model.steps_paid} steps; up to {model.max_colluding} nodes may collude"
    )
    if reference is not None:
        click.echo(
            f"the pooled fit without privacy has AUC {reference:.4f}; only the demo can know it"
        )
    click.echo(f"the model is in {path}")
