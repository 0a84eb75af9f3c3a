"""The usual number of edges: as many as a budget of bytes pays for, because more edges err less.

With equal degrees the noise of a mean does not depend on |E|, and the sampling error falls with it.
So a study file that names no `edges` asks for all sets, or for as many as cost BUDGET_BYTES where
every record of a set belongs to another node. The rule is part of the study document, as
`up to 580000`. Everybody derives |E| from it and from the numbers of records.

100 MB take eight seconds on a line of 100 megabits a second. A processor core deals and evaluates
them in about as long (`umpc plan` prints it for a machine).
"""

from __future__ import annotations

from umpc.crypto.ring import RINGS
from umpc.mpc.masked.compiler import FEW_EDGES, compile_program
from umpc.study.document import Study
from umpc.ustat.sampling import UP_TO

BUDGET_BYTES = 100_000_000
"""All bytes of all edges: from the dealer, and between nodes."""


def usual_edges(study: Study) -> str:
    """The rule for a study that names no edges."""
    if study.degree == 1:
        return "all"
    count = BUDGET_BYTES * 8 // bits_of_an_edge(study)
    # two digits are enough for a budget
    unit = 10 ** max(0, len(str(count)) - 2)
    return f"{UP_TO}{max(1, count // unit * unit)}"


def bits_of_an_edge(study: Study) -> int:
    """Bits that are dealt and sent for an edge whose records belong to different nodes."""
    everybody = tuple(range(study.degree))
    if study.backend == "garbled":
        from umpc.mpc.garbled.plan import garbled_program

        garbled = garbled_program(study.parsed_kernels, RINGS[-1], [everybody])
        return max(plan.edge_bits for plan in garbled.plans.values())
    if study.backend == "triples":
        from umpc.mpc.triples.plan import triples_program

        triples = triples_program(study.parsed_kernels, RINGS[-1], [everybody])
        return max(1, *(each.edge_bits for each in triples.plans.values()))
    bits = _dealt_and_opened(study, few=False)
    if BUDGET_BYTES * 8 // bits > FEW_EDGES:
        return bits
    # so few edges are compared by keys, which take more bytes
    return _dealt_and_opened(study, few=True)


def _dealt_and_opened(study: Study, *, few: bool) -> int:
    """Bits of an edge with a dealer."""
    everybody = tuple(range(study.degree))
    program = compile_program(study.parsed_kernels, RINGS[-1], [everybody], few=few)
    (plan,) = program.plans.values()
    dealt = sum(plan.dealt_bits(party) for party in plan.everybody)
    opened = sum(
        plan.open_width(layer, party)
        for layer in range(len(plan.layers))
        for party in plan.everybody
    )
    return max(1, dealt + (plan.parties - 1) * opened)
