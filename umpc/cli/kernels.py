"""`umpc kernels`: the library's statistics, and the cost of a kernel, before any study.

*Kernel cost.* The cost of kernels, in lines of text: rounds, bits and bytes, with a dealer and
without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path

import click

from umpc.cli.kernel_options import field_of, grade_of, label_of, library_kernels, schema_of
from umpc.coordinator.studyfile import load_kernel
from umpc.counts import COUNTED
from umpc.crypto.ring import RINGS
from umpc.errors import KernelError, StudyError
from umpc.mpc.chunks import Pattern
from umpc.mpc.garbled.circuits import outputs_of
from umpc.mpc.garbled.pieces import carried_bits
from umpc.mpc.garbled.plan import garbled_program
from umpc.mpc.masked.compiler import compile_program
from umpc.mpc.masked.plan import Plan, Program
from umpc.mpc.masked.plan_items import WordPlace
from umpc.mpc.triples.plan import triples_program
from umpc.protocols.registry import USUAL, find_protocol
from umpc.study.computation import Computation
from umpc.study.parts import FieldText
from umpc.ustat.estimators import ESTIMATORS
from umpc.ustat.kernel import Kernel
from umpc.ustat.robust import obstacle
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY, Statistic, find_statistic
from umpc.ustat.text import to_text

SHOWN = 160
"""Characters of a kernel's text that the list shows."""


@click.group(invoke_without_command=True)
@click.pass_context
def kernels(context: click.Context) -> None:
    """List the library's statistics with their formulas and sources.

    To see what one statistic, or your own kernel, computes and costs: umpc kernels explain --help

    An edge is a set of records, for example a pair.
    """
    if context.invoked_subcommand is None:
        for statistic in LIBRARY.values():
            _list(statistic)
        for name, counted in COUNTED.items():
            click.echo(f"{name}({counted.takes}): {counted.title}  [from a table of counts]")


def _list(statistic: Statistic) -> None:
    """Print one statistic: its name and title, its kernels, its source."""
    name = f"{statistic.name}({', '.join(statistic.arguments)})"
    click.echo(f"{name}: {statistic.title}  [{'; '.join(_marks(statistic))}]")
    columns = [argument.removesuffix("...") for argument in statistic.arguments]
    parameters = {"cells": "128"} if statistic.name == "uniformity" else {}
    for expression in statistic.expressions(columns, parameters):
        text = to_text(expression)
        click.echo(f"    {text if len(text) <= SHOWN else text[:SHOWN] + ' …'}")
    click.echo(f"    {statistic.citation}")


def _marks(statistic: Statistic) -> Iterator[str]:
    """The facts in brackets: degree, estimator, classes, parameters."""
    yield f"over {statistic.degree} record{'s' if statistic.degree > 1 else ''}"
    yield statistic.estimator
    if statistic.sampling == "two_sample":
        yield "two classes by a public label"
    if statistic.parameters:
        yield f"parameters {', '.join(p.name for p in statistic.parameters)}"


@kernels.command()
@click.argument("what", metavar="FILE:FUNCTION|STATISTIC")
@click.option(
    "--field",
    "fields",
    multiple=True,
    required=True,
    metavar="NAME=LOWER:UPPER[:RESOLUTION]",
    help="A field's bounds, and the step of its values unless they are whole numbers; or its "
    "categories as NAME=FIRST,SECOND,... Repeat the option for each field; for a STATISTIC, in "
    "the order of its arguments.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of a STATISTIC. Repeat the option for each parameter.",
)
@click.option(
    "--label",
    metavar="NAME=FIRST,SECOND",
    help="The public label of a two-sample study, and its two classes.",
)
@click.option(
    "--protocol",
    metavar="NAME",
    help="The protocol of the study whose hash is printed. The default is that of a study file.",
)
@click.option(
    "--estimator",
    metavar="NAME",
    help="The estimator of your own kernel's study. The default is mean.",
)
@click.option(
    "--adversary",
    metavar="GRADE",
    help="The adversary of the study whose hash is printed. The default is honest.",
)
def explain(
    what: str,
    fields: tuple[str, ...],
    parameters: tuple[str, ...],
    label: str | None,
    protocol: str | None,
    estimator: str | None,
    adversary: str | None,
) -> None:
    """Explain a kernel: its formula, range, sensitivity and cost.

    Give the name of a STATISTIC from the list, or FILE:FUNCTION for your own kernel. A kernel is a
    Python function with one argument for each record of a set.

    The hash is the one that an administrator may list as kernels under [policy]. It covers the
    kernels, the fields with their bounds, the label, the estimator, the protocol
    and the adversary.

    \b
    Example: the file kernels.py holds
      from umpc.ustat.tracing import select
      def close_in_age(a, b):
          near = (a.age - b.age < 5) & (b.age - a.age < 5)
          return select(near, abs(a.balance - b.balance), 0)
    \b
    umpc kernels explain kernels.py:close_in_age --field age=0:127 --field balance=-10000:110000
    umpc kernels explain spearman_rho --field age=0:127 --field balance=-10000:110000
    umpc kernels explain kaplan_meier --field days=0:60 --field died=no,yes
    """

    if what in COUNTED:
        explain_counts(what, [schema_of(text) for text in fields])
        return
    protocol = find_protocol(protocol or USUAL).name
    if ":" in what:
        traced = load_kernel(what, Path.cwd())
        schema = Schema(schema_of(text) for text in fields)
        two_sample = label is not None
        found = [Kernel(each, schema, traced.degree, not two_sample) for each in traced.expressions]
        estimator = estimator or "mean"
    else:
        statistic = find_statistic(what)
        given = dict(text.partition("=")[::2] for text in parameters)
        columns = [text.partition("=")[0] for text in fields]
        found = library_kernels(statistic, columns, given, fields)
        two_sample = statistic.sampling == "two_sample"
        estimator = statistic.estimator
    for kernel in found:
        interval = kernel.interval
        click.echo(f"kernel        {kernel.text}")
        click.echo(f"range         [{interval.low}, {interval.high}], in steps of {kernel.unit}")
        click.echo(f"sensitivity   {interval.width} per edge when one record is replaced")
        click.echo(f"              {against_liars(kernel)}")
    texts = [field_of(text) for text in fields] + ([label_of(label)] if label else [])
    claim = (protocol, grade_of(adversary))
    click.echo(f"hash          {_hash(found, texts, claim, estimator, two_sample)}")
    print_cost(found, compile_program(found, RINGS[-1], _patterns(found[0].degree, two_sample)))


def explain_counts(name: str, fields: Sequence[FieldSchema]) -> None:
    """Print what a statistic of counts releases. Raises: StudyError for other fields."""
    counted = COUNTED[name]
    counted.check_count([field.name for field in fields])
    sizes = [field.upper_units - field.lower_units + 1 for field in fields]
    shown = " x ".join(f"{n:,} of {each.name}" for n, each in zip(sizes, fields, strict=True))
    click.echo(f"statistic     {counted.title}, read off one table at no further epsilon")
    click.echo(f"releases      {prod(sizes):,} noisy counts: {shown}; `bins` make fewer")
    click.echo("sensitivity   2 for the whole table when one record is replaced")
    click.echo(f"number        {counted.headline or 'none'}")
    click.echo(f'allowed by    statistics = ["{name}"], under [policy]')


def _hash(
    found: Sequence[Kernel],
    fields: Sequence[FieldText],
    claim: tuple[str, str],
    estimator: str,
    two_sample: bool,
) -> str:
    """The hash by which a site allows the computation, or which option it needs for that.

    Args: claim: the protocol, and the grade of promise.
    """

    if two_sample and not any(field.public for field in fields):
        return "depends on the public label; give --label NAME=FIRST,SECOND"
    if estimator not in ESTIMATORS or ESTIMATORS[estimator].sums != len(found):
        fitting = [name for name, each in ESTIMATORS.items() if each.sums == len(found)]
        return f"depends on the estimator; give --estimator {' or '.join(fitting)}"
    computation = Computation(
        protocol=claim[0],
        adversary=claim[1],
        estimator=estimator,
        sampling="two_sample" if two_sample else "balanced",
        degree=found[0].degree,
        kernels=tuple(kernel.text for kernel in found),
        fields=tuple(fields),
    )
    return f"{computation.hash}, for kernels under [policy]"


# --- kernel cost ----------------------------------------------------------------------------------


def print_cost(found: Sequence[Kernel], program: Program) -> None:
    """Print the cost of an edge, for each way in which its records can be spread over owners."""

    if found[0].degree == 2:
        click.echo(f"garbled       {_garbled(found)}, with no dealer")
    click.echo(f"triples       {_triples(found)}, with no dealer")
    masked = f"{program.wire_bits} bits a record, once, to each node with which it shares an edge"
    click.echo(f"sent masked   {masked}")
    for pattern, plan in program.plans.items():
        owners = "".join("ABCDEFGH"[party] for party in pattern)
        rounds = len(plan.layers) + 1 + (1 if program.wires else 0)
        click.echo(f"owners {owners}: {rounds} rounds, the reveal included")
        for line in _plan_lines(plan):
            click.echo(f"  {line}")


def _plan_lines(plan: Plan) -> Iterator[str]:
    """One plan: its comparisons, the bits that each owner opens, the bytes dealt to each."""

    numbers = dict.fromkeys((table.difference, table.width) for table in plan.tables)
    compared = ", ".join(f"{width} bits" for _, width in numbers) or "nothing"
    words = sum(isinstance(place, WordPlace) for place in plan.places)
    yield f"compared    {compared}; numbers re-masked: {words}"
    layers = range(len(plan.layers))
    opened = [sum(plan.open_width(layer, party) for layer in layers) for party in plan.everybody]
    yield f"opened      {' + '.join(map(str, opened))} bits an edge"
    dealt = [-(-plan.dealt_bits(party) // 8) for party in plan.everybody]
    yield f"dealt       {' + '.join(map(str, dealt))} bytes an edge, in the 64-bit ring"


def _garbled(found: Sequence[Kernel]) -> str:
    """The cost of a pair that its two owners garble, in the 64-bit ring."""

    try:
        program = garbled_program(found, RINGS[-1], [(0, 1)])
    except KernelError as error:
        return f"not possible: {error.message}"
    gates = outputs_of(program.circuit).and_count
    labels, choices = (len(program.circuit.inputs_of(record)) for record in (0, 1))
    choices += len(carried_bits(program.circuit, 1))
    (plan,) = program.plans.values()
    return (
        f"{program.rounds + 1} rounds; {gates} AND gates and {plan.edge_bits // 8} bytes an edge; "
        f"once a record {16 * labels} bytes of labels, or {4 * choices} of choices"
    )


def _triples(found: Sequence[Kernel]) -> str:
    """The cost of an edge whose records all have different owners, in the 64-bit ring."""

    everybody = tuple(range(found[0].degree))
    try:
        program = triples_program(found, RINGS[-1], [everybody])
    except KernelError as error:
        return f"not possible: {error.message}"
    plan = program.plans[everybody]
    return (
        f"{program.rounds + 1} rounds; {len(plan.ands)} ANDs by triples of "
        f"{plan.parties} owners and {-(-plan.edge_bits // 8)} bytes an edge"
    )


def _patterns(degree: int, two_sample: bool) -> list[Pattern]:
    """The owners of an edge's records, in order, for each way with at least two owners."""
    if two_sample:
        return [(0, 1)]
    steps = product((0, 1), repeat=degree - 1)
    patterns = (tuple(sum(step[:place]) for place in range(degree)) for step in steps)
    return [pattern for pattern in patterns if pattern[-1] > 0]


def against_liars(kernel: Kernel) -> str:
    """The robust sensitivity, or why adversary = "lying_nodes" does not allow the kernel."""

    reason = obstacle(kernel.polynomial, kernel.degree)
    if reason:
        return f"not for lying nodes: {reason}"
    try:
        return f"against lying nodes Δf {kernel.robust.change}"
    except StudyError as error:
        return f"not for lying nodes: {error.message}"
