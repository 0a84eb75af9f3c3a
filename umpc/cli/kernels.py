"""`umpc kernels`: the library's statistics, and the cost of a kernel, before any study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from umpc.mpc.masked.plan import Pattern, Plan, Program
    from umpc.study.parts import FieldText
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import FieldSchema
    from umpc.ustat.statistics import Statistic

SHOWN = 160
"""Characters of a kernel's text that the list shows."""
EXAMPLE_UPPER = 127
"""The list takes fields of whole numbers from 0 to this one, and labels of two or three values."""


@click.group(invoke_without_command=True)
@click.pass_context
def kernels(context: click.Context) -> None:
    """List the library's statistics, their ranges and their costs.

    To see what one statistic, or your own kernel, computes and costs: umpc kernels explain --help

    The list's ranges and costs are for fields of whole numbers from 0 to 127. An edge is a set of
    records, for example a pair. Its cost depends on how many sites own its records. The list shows
    the cost of an edge whose records are all at different sites.
    """
    if context.invoked_subcommand is None:
        from umpc.ustat.statistics import LIBRARY

        for statistic in LIBRARY.values():
            _list(statistic)


def _list(statistic: Statistic) -> None:
    """Print one statistic: its name and title, its kernels, its cost, its source."""
    from umpc.ustat.text import to_text

    found = _example_kernels(statistic)
    name = f"{statistic.name}({', '.join(statistic.arguments)})"
    click.echo(f"{name}: {statistic.title}  [{'; '.join(_marks(statistic))}]")
    for kernel in found:
        text = to_text(kernel.expression)
        interval = kernel.interval
        click.echo(f"    {text if len(text) <= SHOWN else text[:SHOWN] + ' …'}")
        line = f"      range [{interval.low}, {interval.high}], Δf {interval.width}"
        click.echo(f"{line}; {_against_liars(kernel)}")
    program = _program(found, statistic.sampling == "two_sample")
    for line in _costs(found, program):
        click.echo(f"    {line}")
    click.echo(f"    {statistic.citation}")


def _marks(statistic: Statistic) -> Iterator[str]:
    """The facts in brackets: degree, estimator, classes, parameters."""
    yield f"over {statistic.degree} record{'s' if statistic.degree > 1 else ''}"
    yield statistic.estimator
    if statistic.sampling == "two_sample":
        yield "two classes by a public label"
    if statistic.parameters:
        yield f"parameters {', '.join(p.name for p in statistic.parameters)}"


def _example_kernels(statistic: Statistic) -> list[Kernel]:
    """The statistic's kernels over the list's fields."""
    columns = [argument.removesuffix("...") for argument in statistic.arguments]
    fields = [_example(column, statistic.degree) for column in columns]
    parameters = {"cells": "128"} if statistic.name == "uniformity" else {}
    return _library_kernels(statistic, columns, parameters, fields)


def _costs(found: Sequence[Kernel], program: Program) -> Iterator[str]:
    """The cost of an edge whose records are all at different sites."""
    if not program.plans:
        yield "1 round; no messages between nodes, because every set is one record"
        return
    plan = list(program.plans.values())[-1]
    opened = sum(plan.open_width(layer, 0) for layer in range(len(plan.layers)))
    dealt = sum(map(plan.dealt_bits, plan.everybody)) // 8
    edge = f"an edge: each owner opens {opened} bit(s), the dealer deals {dealt} bytes"
    yield f"{program.rounds + 1} rounds; {edge}"
    if found[0].degree == 2:
        yield f"without a dealer: {_garbled(found)}"


def _example(column: str, degree: int) -> str:
    """A field of the list, as `--field` takes it."""
    if column != "label":
        return f"{column}=0:{EXAMPLE_UPPER}"
    return "label=0:2" if degree > 2 else "label=0:1"


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
    """
    from umpc.coordinator.kernelfile import load_kernel
    from umpc.protocols.registry import USUAL, find_protocol
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import Schema
    from umpc.ustat.statistics import find_statistic

    protocol = find_protocol(protocol or USUAL).name
    if ":" in what:
        traced = load_kernel(what, Path.cwd())
        schema = Schema(_field(text) for text in fields)
        two_sample = label is not None
        found = [Kernel(each, schema, traced.degree, not two_sample) for each in traced.expressions]
        estimator = estimator or "mean"
    else:
        statistic = find_statistic(what)
        given = dict(text.partition("=")[::2] for text in parameters)
        columns = [text.partition("=")[0] for text in fields]
        found = _library_kernels(statistic, columns, given, fields)
        two_sample = statistic.sampling == "two_sample"
        estimator = statistic.estimator
    for kernel in found:
        interval = kernel.interval
        click.echo(f"kernel        {kernel.text}")
        click.echo(f"range         [{interval.low}, {interval.high}], in steps of {kernel.unit}")
        click.echo(f"sensitivity   {interval.width} per edge when one record is replaced")
        click.echo(f"              {_against_liars(kernel)}")
    texts = [_field_text(text) for text in fields] + ([_label(label)] if label else [])
    claim = (protocol, _grade(adversary))
    click.echo(f"hash          {_hash(found, texts, claim, estimator, two_sample)}")
    _explain_cost(found, _program(found, two_sample))


def _against_liars(kernel: Kernel) -> str:
    """The robust sensitivity, or why adversary = "lying_nodes" does not allow the kernel."""
    from umpc.errors import StudyError
    from umpc.ustat.robust import obstacle

    reason = obstacle(kernel.polynomial, kernel.degree)
    if reason:
        return f"not for lying nodes: {reason}"
    try:
        return f"against lying nodes Δf {kernel.robust.change}"
    except StudyError as error:
        return f"not for lying nodes: {error.message}"


def _grade(adversary: str | None) -> str:
    """The grade of promise that was asked for. Raises: StudyError for an unknown one."""
    from umpc.errors import StudyError
    from umpc.study.grades import ADVERSARIES, HONEST

    if adversary is not None and adversary not in ADVERSARIES:
        raise StudyError(f"--adversary takes {' or '.join(ADVERSARIES)}, got {adversary!r}")
    return adversary or HONEST


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
    from umpc.study.computation import Computation
    from umpc.ustat.estimators import ESTIMATORS

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


def _explain_cost(found: Sequence[Kernel], program: Program) -> None:
    """Print the cost of an edge, for each way in which its records can be spread over owners."""

    if found[0].degree == 2:
        click.echo(f"garbled       {_garbled(found)}, with no dealer")
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
    from umpc.mpc.masked.plan_items import WordPlace

    by_two = ", ".join(f"{gate.width} bits" for gate in plan.comparisons) or "none"
    by_more = len({(table.difference, table.width) for table in plan.tables})
    words = sum(isinstance(place, WordPlace) for place in plan.places)
    compared = f"by two owners: {by_two}; by three or more: {by_more}"
    yield f"compared    {compared}; numbers re-masked: {words}"
    layers = range(len(plan.layers))
    opened = [sum(plan.open_width(layer, party) for layer in layers) for party in plan.everybody]
    yield f"opened      {' + '.join(map(str, opened))} bits an edge"
    dealt = [-(-plan.dealt_bits(party) // 8) for party in plan.everybody]
    yield f"dealt       {' + '.join(map(str, dealt))} bytes an edge, in the 64-bit ring"


def _garbled(found: Sequence[Kernel]) -> str:
    """The cost of a pair that its two owners garble, in the 64-bit ring."""
    from umpc.crypto.ring import RINGS
    from umpc.errors import KernelError
    from umpc.mpc.garbled.outputs import outputs_of
    from umpc.mpc.garbled.plan import garbled_program

    try:
        program = garbled_program(found, RINGS[-1], [(0, 1)])
    except KernelError as error:
        return f"not possible: {error.message}"
    gates = outputs_of(program.circuit).and_count
    labels, choices = (len(program.circuit.inputs_of(record)) for record in (0, 1))
    (plan,) = program.plans.values()
    return (
        f"{program.rounds + 1} rounds; {gates} AND gates and {plan.edge_bits // 8} bytes an edge; "
        f"once a record {16 * labels} bytes of labels, or {4 * choices} of choices"
    )


def _library_kernels(
    statistic: Statistic,
    columns: Sequence[str],
    parameters: Mapping[str, str],
    fields: Iterable[str],
) -> list[Kernel]:
    """A library statistic's kernels over fields as `--field` takes them."""
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import Schema

    schema = Schema(_field(text) for text in fields)
    symmetric = statistic.sampling != "two_sample"
    expressions = statistic.expressions(columns, parameters)
    return [Kernel(expression, schema, statistic.degree, symmetric) for expression in expressions]


def _program(found: Sequence[Kernel], two_sample: bool) -> Program:
    """The plans for all ways in which an edge's records can be spread over owners."""
    from umpc.crypto.ring import RINGS
    from umpc.mpc.masked.compiler import compile_program

    return compile_program(found, RINGS[-1], _patterns(found[0].degree, two_sample))


def _patterns(degree: int, two_sample: bool) -> list[Pattern]:
    """The owners of an edge's records, in order, for each way with at least two owners."""
    if two_sample:
        return [(0, 1)]
    steps = product((0, 1), repeat=degree - 1)
    patterns = (tuple(sum(step[:place]) for place in range(degree)) for step in steps)
    return [pattern for pattern in patterns if pattern[-1] > 0]


def _field(text: str) -> FieldSchema:
    """A field as the option --field gives it. Raises: StudyError for another form."""
    return _field_text(text).schema()


def _field_text(text: str) -> FieldText:
    """A field from NAME=LOWER:UPPER[:RESOLUTION] or NAME=FIRST,SECOND,…. Raises: StudyError."""
    from umpc.errors import StudyError
    from umpc.study.parts import FieldText

    name, _, rest = text.partition("=")
    parts = rest.split(":")
    if name and len(parts) == 1 and "," in rest:
        return FieldText.of_categories(name, rest.split(","))
    if not name or len(parts) not in (2, 3):
        raise StudyError(
            f"--field takes NAME=LOWER:UPPER, NAME=LOWER:UPPER:RESOLUTION or "
            f"NAME=FIRST,SECOND,..., got {text!r}"
        )
    lower, upper = parts[:2]
    if len(parts) == 2:
        return FieldText(name, lower, upper, whole=True)
    return FieldText(name, lower, upper, parts[2])


def _label(text: str) -> FieldText:
    """The public label from NAME=FIRST,SECOND. Raises: StudyError."""
    from umpc.errors import StudyError
    from umpc.study.parts import FieldText

    name, _, rest = text.partition("=")
    classes = rest.split(",")
    if not name or len(classes) != 2:
        raise StudyError(f"--label takes NAME=FIRST,SECOND, got {text!r}")
    return FieldText.of_categories(name, classes, public=True)
