"""`umpc infer`: intervals and a p-value from a report, at no further ε."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from umpc.cli.shared import FILE, FORMAT
from umpc.counts import answers_of
from umpc.counts.answers import CountsAnswer
from umpc.errors import StudyError
from umpc.inference.matrix import matrix_of
from umpc.inference.report_inference import Inference
from umpc.reporting.json_document import (
    InferenceDocument,
    inference_document,
    inference_of,
    read_report,
)
from umpc.reporting.rows import KIND_WORDS, describe_test, names_of_parts, rounded
from umpc.text_file import printable


@click.command()
@click.argument("file", metavar="REPORT.json", type=FILE)
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="How often intervals hold."
)
@click.option(
    "--alternative",
    type=click.Choice(["two-sided", "greater", "less"]),
    help="The side of the test. The default is the usual one of the statistic. "
    "The hypothesis of tau* has greater only.",
)
@click.option(
    "--null",
    type=float,
    help="Test that the statistic has this value. The default is its own hypothesis.",
)
@click.option("--part", type=int, help="The value of a report that has several, from 1.")
@FORMAT
def infer(
    file: Path,
    level: float,
    alternative: str | None,
    null: float | None,
    part: int | None,
    style: str,
) -> None:
    """Compute intervals and a p-value from a report, which --format json of a study printed.

    Reports are public, and this takes no further epsilon. No site is asked.

    \b
    umpc study run study.toml --format json > report.json
    umpc infer report.json --level 0.9
    umpc infer report.json --alternative greater --null 0.3

    A table of counts gives its curve, numbers and tests, with intervals at --level.
    """

    report = whole = read_report(file)
    if report.parts:
        if part is None or not 1 <= part <= len(report.parts):
            listed = "; ".join(f"{at} {name}" for at, name in enumerate(names_of_parts(report), 1))
            raise StudyError(f"the report has several values; take one by --part: {listed}")
        report = report.of_part(part - 1)
    if report.counts is not None and alternative is None and null is None and 0.5 <= level < 1:
        _print_answers(answers_of(report.counts, report.records, level), style)
        return
    inference = Inference(report)
    inference.interval(level)  # refuses a wrong level, and a report without a value
    found = inference_of(report, level)
    if alternative is not None or null is not None:
        found = replace(found, test=inference.test(alternative, null))
    if style == "json":
        print(json.dumps(inference_document(found)))
        return
    _print(found, report.noise_std)
    if part is not None and found.test:
        told = "; its matrix has Holm's p-values" if matrix_of(whole) else ""
        click.echo(f"this p-value is not corrected for the {len(whole.parts)} values{told}")


def _print_answers(answers: Sequence[CountsAnswer], style: str) -> None:
    """Curves, numbers and tests of a table of counts, one line each."""
    if style == "json":
        print(json.dumps([answer.to_dict() for answer in answers]))
        return
    for answer in answers:
        ends = f", {answer.level:.4g} intervals" if answer.series else ""
        click.echo(f"{printable(answer.title)}{ends}")
        for name, value, about in (*answer.rows(), *answer.series_rows()):
            click.echo(printable(f"  {name:38} {value}  {about}"))
        for note in answer.notes:
            click.echo(f"  {printable(note)}")


def _print(found: InferenceDocument, noise_std: float | None) -> None:
    """Intervals, the test and the sources of error, one line each."""

    for each in found.intervals:
        words = f"{each.level:.4g} interval, {KIND_WORDS[each.kind]}"
        low, high = rounded(each.low, noise_std), rounded(each.high, noise_std)
        click.echo(f"{words:40} {low} to {high}, for {each.covers}")
    if found.test:
        click.echo(describe_test(found.test))
    for source in found.errors:
        click.echo(f"{'error from ' + source.name:40} {source.size}: {source.about}")
