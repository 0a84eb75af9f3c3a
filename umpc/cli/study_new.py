"""`umpc study new`: a study file from a question in words, with the intervals that it will have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from umpc.cli.shared import FILE
from umpc.errors import ConfigError
from umpc.text_file import check_new

HELP = {
    "question": "What you want to know: association (do two columns go together), difference (does "
    "a number differ between groups), spread, inequality, level, distribution (median, quantiles), "
    "survival (a time, an event, and maybe a group or a score), or agreement (which of two scores "
    "goes better with a third column, such as a diagnosis).",
    "columns": "The columns that the question is about, as age,score.",
    "bounds": "A column's bounds, and its step unless that is 1, as weight=0:300:0.1. They are "
    "public: take them from what the column means, never from data.",
    "categories": "A column's categories, in their order, as sex=f,m.",
    "records": "Each site's number of records, as 1000,800; or of two groups, as 180+120,150+150, "
    "if everybody may know them.",
    "protect": "The unit of protection: record, or COLUMN:MOST for all records of a person, as "
    "patient:3.",
    "exact": "The half width that the 95 % interval for these records' value may have; epsilon "
    "follows from it; 0 for none.",
    "epsilon": "The privacy of the result, in place of --exact; by default 1.",
    "site": "A site's node, as north=north.example.org:7100, in the order of --records.",
    "dealer": "The dealer, as dealer=dealer.example.org:7100.",
}
"""Option → its help, which a person who is asked also reads."""
USUAL = {
    "age": ("0:120", " in years"),
    "bmi": ("5:100:0.1", " in kg/m²"),
    "heart_rate": ("0:300", " in beats per minute"),
    "height": ("20:250", " in cm"),
    "systolic_blood_pressure": ("0:350", " in mmHg"),
    "temperature": ("20:45:0.1", " in °C"),
    "weight": ("0:400:0.1", " in kg"),
}
"""Name of a column → bounds to propose, and the unit that they are in."""
AS_GIVEN = ("epsilon", "statistic", "adversary", "identity", "name")
"""Options that `umpc.plan` takes as they are."""


def _option(name: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(f"--{name}", help=HELP[name], **settings)


@click.command()
@click.option(
    "--into", type=FILE, default="study.toml", show_default=True, help="The file to write."
)
@_option("question")
@_option("columns")
@_option("bounds", multiple=True)
@_option("categories", multiple=True)
@_option("records")
@_option("protect")
@_option("exact", type=click.FloatRange(min=0, min_open=True))
@_option("epsilon")
@_option("site", multiple=True)
@_option("dealer")
@click.option(
    "--statistic", help="Of the library, in place of the proposed one, over the same columns."
)
@click.option(
    "--adversary",
    help="honest or lying_nodes, the grade of promise. The second is usual where it costs little.",
)
@click.option(
    "--identity", default="coordinator", show_default=True, help="The coordinator's folder."
)
@click.option("--name", help="The study's name. The default is made of question and columns.")
@click.option(
    "--table",
    type=FILE,
    help="A table of your own, to say whether its values fit the study's steps, as `umpc study "
    "check --table` does. Bounds do not come from it.",
)
def new(
    into: Path,
    dealer: str | None,
    table: Path | None,
    **answers: Any,
) -> None:
    """Write a study file from a question, and show what it will say and cost.

    It asks for what the options do not say. If --question, --columns with their bounds, and
    --records are given, it asks nothing. It proposes a statistic, epsilon and the grade of promise,
    and shows the interval of such a study over made-up records. No site is asked, and nothing is
    paid.

    \b
    umpc study new --question association --columns age,score --bounds age=0:120 \\
        --bounds score=0:100 --records 1000,800 --exact 0.02
    """
    from umpc.api.proposal import RECORD, plan, proposed
    from umpc.cli.demo_options import named_value
    from umpc.cli.kernel_options import field_of, listed

    check_new(into, failure=ConfigError)
    given = map(field_of, (*answers["bounds"], *answers["categories"]))
    fields = {field.name: field for field in given}
    columns = listed(answers["columns"]) if answers["columns"] else list(fields)
    missing = [f"--{each}" for each in ("question", "records") if not answers[each]]
    missing += [] if columns else ["--columns"]
    missing += [f"--bounds or --categories of {each}" for each in columns if each not in fields]

    def ask(option: str, default: Any = None, words: str = "") -> Any:
        """An answer: the option's, or a person's if any is missing, or the default."""
        if not words and answers[option]:
            return answers[option]
        if default is not None and not missing:
            return default
        click.echo(HELP[option], err=True)
        try:
            return click.prompt(words or option, default=default, err=True)
        except click.Abort:
            if sys.stdin.isatty():
                raise
            raise ConfigError(
                f"answers were expected, and nobody is at a terminal: give {', '.join(missing)}"
            ) from None

    question = ask("question", "association")
    columns = columns or listed(ask("columns"))
    for column in columns:
        if column not in fields:
            usual, unit = USUAL.get(column.lower(), (None, ""))
            told = ask("bounds", usual, f"{column}{unit}: LOWER:UPPER, or FIRST,SECOND")
            fields[column] = field_of(f'"{column}"={told}')
    proposed(question, [fields[column] for column in columns])  # refuses before more is asked
    records, protect = ask("records"), ask("protect", RECORD)
    exact = answers["exact"] if answers["epsilon"] else ask("exact", 0.0)
    told = ask("site", "")
    sites = told if answers["site"] else [each for each in listed(told) if each]
    proposal = plan(
        question,
        {column: fields[column] for column in columns},
        records,
        exact=exact or None,
        protect=protect,
        nodes=dict(named_value("--site", each) for each in sites),
        dealer=dict([named_value("--dealer", dealer)]) if dealer else None,
        **{each: answers[each] for each in AS_GIVEN},
    )
    click.echo(str(proposal))
    proposal.save(into)
    if table is not None:
        from umpc.cli.check_table import compare_table

        for column, text in compare_table(into, table):
            click.echo(f"field {column!r}: {text}")
    click.echo(f"written: {into}; correct names and addresses, then umpc study check {into}")
