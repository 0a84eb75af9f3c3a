"""The cost of kernels, in lines of text: rounds, bits and bytes, with a dealer and without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from umpc.mpc.masked.plan import Pattern, Plan, Program
    from umpc.ustat.kernel import Kernel


def cost_lines(found: Sequence[Kernel], program: Program) -> Iterator[str]:
    """The cost of an edge whose records are all at different sites."""
    if not program.plans:
        yield "1 round; no messages between nodes, because every set is one record"
        return
    plan = list(program.plans.values())[-1]
    opened = sum(plan.open_width(layer, 0) for layer in range(len(plan.layers)))
    dealt = sum(map(plan.dealt_bits, plan.everybody)) // 8
    edge = f"an edge: each owner opens {opened} bit(s), the dealer deals {dealt} bytes"
    yield f"{program.rounds + 1} rounds; {edge}"
    alone = _garbled(found) if found[0].degree == 2 else _triples(found)
    yield f"without a dealer: {alone}"


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
    from umpc.mpc.masked.plan_items import WordPlace

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
    from umpc.crypto.ring import RINGS
    from umpc.errors import KernelError
    from umpc.mpc.garbled.outputs import outputs_of
    from umpc.mpc.garbled.pieces import carried_bits
    from umpc.mpc.garbled.plan import garbled_program

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
    from umpc.crypto.ring import RINGS
    from umpc.errors import KernelError
    from umpc.mpc.triples.plan import triples_program

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


def masked_program(found: Sequence[Kernel], two_sample: bool) -> Program:
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


def against_liars(kernel: Kernel) -> str:
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
