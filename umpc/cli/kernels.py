"""`umpc kernels`: the library, and what one's own kernel will cost, before any study."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from umpc.mpc.masked.plan import Pattern, Program
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.statistics import Statistic

SHOWN = 160
"""Characters of a kernel's text in the list."""
EXAMPLE_UPPER = 127
"""The list's ranges and costs are for whole numbers from 0 to here, and labels of two or three values."""


@click.group(invoke_without_command=True)
@click.pass_context
def kernels(context: click.Context) -> None:
    """List the library's statistics; `explain` says what one statistic or one's own kernel means and costs.

    Ranges and costs of the list are for fields of whole numbers from 0 to 127. An edge is a set of records; what it
    costs depends on how many owners it has, and is shown for an owner each.
    """
    if context.invoked_subcommand is None:
        from umpc.ustat.statistics import LIBRARY

        for statistic in LIBRARY.values():
            _list(statistic)


def _list(statistic: Statistic) -> None:
    from umpc.ustat.text import to_text

    columns = [argument.removesuffix("...") for argument in statistic.arguments]
    fields = [
        "label=0:2" if c == "label" and statistic.degree > 2 else _example(c) for c in columns
    ]
    found = _library_kernels(
        statistic, columns, {"cells": "128"} if statistic.name == "uniformity" else {}, fields
    )
    marks = [
        f"over {statistic.degree} record{'s' if statistic.degree > 1 else ''}",
        statistic.estimator,
    ]
    marks += ["two classes by a public label"] if statistic.sampling == "two_sample" else []
    marks += (
        [f"parameters {', '.join(p.name for p in statistic.parameters)}"]
        if statistic.parameters
        else []
    )
    click.echo(
        f"{statistic.name}({', '.join(statistic.arguments)}): {statistic.title}  [{'; '.join(marks)}]"
    )
    for kernel in found:
        text = to_text(kernel.expression)
        click.echo(f"    {text if len(text) <= SHOWN else text[:SHOWN] + ' …'}")
        click.echo(
            f"      range [{kernel.interval.low}, {kernel.interval.high}], Δf {kernel.interval.width}"
        )
    program = _program(found, statistic.sampling == "two_sample")
    if program.plans:
        plan = list(program.plans.values())[-1]
        sent = sum(plan.open_width(layer, 0) for layer in range(len(plan.layers)))
        dealt = sum(map(plan.dealt_bits, plan.everybody))
        click.echo(
            f"    {program.rounds + 1} rounds; an edge: {sent} bits opened by an owner, {dealt // 8} bytes dealt"
        )
        if statistic.degree == 2:
            click.echo(f"    without a dealer: {_garbled(found)}")
    else:
        click.echo("    1 round; nothing is exchanged, every record has one owner")
    click.echo(f"    {statistic.citation}")


def _example(column: str) -> str:
    return f"{column}=0:{1 if column == 'label' else EXAMPLE_UPPER}"


@kernels.command()
@click.argument("what", metavar="FILE:FUNCTION|STATISTIC")
@click.option(
    "--field",
    "fields",
    multiple=True,
    required=True,
    metavar="NAME=LOWER:UPPER[:RESOLUTION]",
    help="A field's bounds, and the step of its values (default 1). Give it once per field; for a statistic in the "
    "order of its arguments.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of a statistic.",
)
def explain(what: str, fields: tuple[str, ...], parameters: tuple[str, ...]) -> None:
    """Say what the kernel FUNCTION in FILE, or a STATISTIC, computes, its range and sensitivity, and what it costs.

    \b
    Example, kernels.py:
      from umpc.ustat.tracing import select
      def close_in_age(a, b):
          near = (a.age - b.age < 5) & (b.age - a.age < 5)
          return select(near, abs(a.balance - b.balance), 0)
    \b
    umpc kernels explain kernels.py:close_in_age --field age=0:127 --field balance=-10000:110000
    umpc kernels explain spearman_rho --field age=0:127 --field balance=-10000:110000
    """
    from umpc.coordinator.kernelfile import load_kernel
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import Schema
    from umpc.ustat.statistics import find_statistic

    if ":" in what:
        traced = load_kernel(what, Path.cwd())
        schema = Schema(_field(text) for text in fields)
        found, two_sample = [Kernel(e, schema, traced.degree) for e in traced.expressions], False
    else:
        statistic = find_statistic(what)
        given = dict(text.partition("=")[::2] for text in parameters)
        columns = [text.partition("=")[0] for text in fields]
        found, two_sample = (
            _library_kernels(statistic, columns, given, fields),
            statistic.sampling == "two_sample",
        )
    for kernel in found:
        click.echo(f"kernel        {kernel.text}")
        click.echo(f"hash          {kernel.hash}")
        click.echo(
            f"range         [{kernel.interval.low}, {kernel.interval.high}], in steps of {kernel.unit}"
        )
        click.echo(f"sensitivity   {kernel.interval.width} per edge when one record is replaced")
    _explain_cost(found, _program(found, two_sample))


def _explain_cost(found: Sequence[Kernel], program: Program) -> None:
    from umpc.mpc.masked.plan_items import WordPlace

    if found[0].degree == 2:
        click.echo(f"garbled       {_garbled(found)}, with no dealer")
    click.echo(
        f"sent masked   {program.wire_bits} bits a record, once, to each node with which it shares an edge"
    )
    for pattern, plan in program.plans.items():
        owners = "".join("ABCDEFGH"[party] for party in pattern)
        rounds = len(plan.layers) + 1 + (1 if program.wires else 0)
        compared = ", ".join(f"{gate.width} bits" for gate in plan.comparisons) or "none"
        mixed = len({(table.difference, table.width) for table in plan.tables})
        words = sum(isinstance(place, WordPlace) for place in plan.places)
        opened = [
            sum(plan.open_width(layer, p) for layer in range(len(plan.layers)))
            for p in plan.everybody
        ]
        dealt = [plan.dealt_bits(party) for party in plan.everybody]
        click.echo(f"owners {owners}: {rounds} rounds, the reveal included")
        click.echo(
            f"  compared    by two owners: {compared}; by three or more: {mixed}; numbers re-masked: {words}"
        )
        click.echo(f"  opened      {' + '.join(map(str, opened))} bits an edge")
        click.echo(
            f"  dealt       {' + '.join(str(-(-bits // 8)) for bits in dealt)} bytes an edge, in the 64-bit ring"
        )


def _garbled(found: Sequence[Kernel]) -> str:
    """What an edge of two owners costs where it is garbled between them, in the 64-bit ring."""
    from umpc.crypto.ring import RINGS
    from umpc.errors import KernelError
    from umpc.mpc.garbled.outputs import outputs_of
    from umpc.mpc.garbled.plan import garbled_program

    try:
        program = garbled_program(found, RINGS[-1], [(0, 1)])
    except KernelError as error:
        return f"not possible: {error.message}"
    gates, bits = (
        outputs_of(program.circuit).and_count,
        [len(program.circuit.inputs_of(record)) for record in (0, 1)],
    )
    (plan,) = program.plans.values()
    return (
        f"{program.rounds + 1} rounds; {gates} AND gates and {plan.edge_bits // 8} bytes an edge; once a record "
        f"{16 * bits[0]} bytes of labels, or {4 * bits[1]} of choices"
    )


def _library_kernels(
    statistic: Statistic, columns: Sequence[str], parameters: dict, fields: Iterable[str]
) -> list:
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import Schema

    schema, symmetric = Schema(_field(text) for text in fields), statistic.sampling != "two_sample"
    expressions = statistic.expressions(columns, parameters)
    return [Kernel(expression, schema, statistic.degree, symmetric) for expression in expressions]


def _program(found: Sequence[Kernel], two_sample: bool) -> Program:
    """The plans of all ways in which an edge's records can be spread over owners."""
    from umpc.crypto.ring import RINGS
    from umpc.mpc.masked.compiler import compile_program

    return compile_program(found, RINGS[-1], _patterns(found[0].degree, two_sample))


def _patterns(degree: int, two_sample: bool) -> list[Pattern]:
    if two_sample:
        return [(0, 1)]
    steps = product((0, 1), repeat=degree - 1)
    patterns = (tuple(sum(step[:place]) for place in range(degree)) for step in steps)
    return [pattern for pattern in patterns if pattern[-1] > 0]


def _field(text: str):
    from umpc.errors import StudyError
    from umpc.study.parts import FieldText

    name, _, rest = text.partition("=")
    parts = rest.split(":")
    if not name or len(parts) not in (2, 3):
        raise StudyError(
            f"a field is given as NAME=LOWER:UPPER or NAME=LOWER:UPPER:RESOLUTION, got {text!r}"
        )
    return FieldText(name, *parts).schema()
