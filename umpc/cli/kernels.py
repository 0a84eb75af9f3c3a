"""`umpc kernels`: the library, and what one's own kernel will cost, before any study."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(invoke_without_command=True)
@click.pass_context
def kernels(context: click.Context) -> None:
    """List the library's statistics; `explain` says what one's own kernel means and costs."""
    if context.invoked_subcommand is None:
        from umpc.ustat.statistics import LIBRARY
        from umpc.ustat.text import to_text

        for statistic in LIBRARY.values():
            arguments = list(statistic.arguments)
            click.echo(f"{statistic.name}({', '.join(arguments)}): {statistic.title}")
            click.echo(f"    {to_text(statistic.expression(arguments))}")
            click.echo(f"    {statistic.citation}")


@kernels.command()
@click.argument("place", metavar="FILE:FUNCTION")
@click.option(
    "--field",
    "fields",
    multiple=True,
    required=True,
    metavar="NAME=LOWER:UPPER[:RESOLUTION]",
    help="A field's bounds, and the step of its values (default 1). Give it once per field.",
)
def explain(place: str, fields: tuple[str, ...]) -> None:
    """Say what the kernel FUNCTION in FILE computes, its range and sensitivity, and what a pair of records costs.

    \b
    Example, kernels.py:
      from umpc.ustat.tracing import select
      def close_in_age(a, b):
          near = (a.age - b.age < 5) & (b.age - a.age < 5)
          return select(near, abs(a.balance - b.balance), 0)
    \b
    umpc kernels explain kernels.py:close_in_age --field age=0:127 --field balance=-10000:110000
    """
    from umpc.coordinator.kernelfile import load_kernel
    from umpc.mpc.material import dealt_bytes
    from umpc.mpc.plan import compile_pair
    from umpc.mpc.ring import RINGS
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import Schema

    kernel = Kernel(load_kernel(place, Path.cwd()), Schema(_field(text) for text in fields))
    plan = compile_pair(kernel, RINGS[-1])
    widths = ", ".join(f"{gate.width} bits" for gate in plan.comparisons) or "none"
    sent = sum(wire.width for wire in plan.wires)
    click.echo(f"kernel        {kernel.text}")
    click.echo(f"range         [{kernel.interval.low}, {kernel.interval.high}], in steps of {kernel.unit}")
    click.echo(f"sensitivity   {kernel.interval.width} per pair when one record is replaced")
    click.echo(f"comparisons   {widths}")
    click.echo(f"rounds        {plan.rounds + 1}, the reveal included")
    click.echo(f"online        {plan.bits} bits a pair and way; {sent} bits a record, once")
    click.echo(f"dealt         {dealt_bytes(plan, 0)} + {dealt_bytes(plan, 1)} bytes a pair, in the 64-bit ring")


def _field(text: str):
    from umpc.errors import StudyError
    from umpc.study import FieldText

    name, _, rest = text.partition("=")
    parts = rest.split(":")
    if not name or len(parts) not in (2, 3):
        raise StudyError(f"a field is given as NAME=LOWER:UPPER or NAME=LOWER:UPPER:RESOLUTION, got {text!r}")
    return FieldText(name, *parts).schema()
