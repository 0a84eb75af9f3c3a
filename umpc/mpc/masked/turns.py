"""How many full chunks of a large cell an owner computes together, where the kernel computes them.

Large cells take turns in the common order, chunk by chunk. A *turn* has the next TURN chunks of
every large cell. A batch is a part of one turn: full chunks with the same plan in which the node is
the same party. Cells of other patterns may come between them. Each chunk keeps its own seeds,
material and messages, and a node that computes chunks one by one sends the same bytes.

A batch waits for the messages of all its chunks, and no node can wait for ever. Suppose that nodes
wait, and take the first turn that some node has not begun. All nodes have begun all chunks before
it, and no batch has chunks of two turns. So every owner of an earlier chunk sends its round 1,
hence every one gets round 1 and sends round 2, and so on: the earlier chunks end. Then every node
has room for the whole turn, because `chunks_together` says 1 where a turn is larger than the room
of a node. It takes its material out of its window as it comes, so the dealer deals, and every node
begins the turn.
"""

from __future__ import annotations

from collections import Counter

from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.masked.compiled.rows import serves
from umpc.mpc.masked.plan import Program

TURN = 8
"""The most full chunks of a cell that are computed together: calls of a millisecond, without the
interpreter's lock."""
FEWEST = 4 * TURN
"""Chunks of some node, from which on they are computed together: fewer keep more threads busy one
by one."""


def chunks_together(attempt: SharedAttempt) -> int:
    """Full chunks that a node, or the dealer, may compute together; 1: none.

    It follows from public facts, and from whether this process has the kernel.
    """
    program = attempt.program
    if not isinstance(program, Program) or not all(map(serves, program.plans.values())):
        return 1
    cells_of_node: Counter[int] = Counter()
    chunks_of_node: Counter[int] = Counter()
    for owners, chunks in attempt.large_cells:
        for node in set(owners):
            cells_of_node[node] += 1
            chunks_of_node[node] += chunks
    has_room = max(cells_of_node.values(), default=0) * TURN <= program.chunks_in_flight
    is_long = max(chunks_of_node.values(), default=0) >= FEWEST
    return TURN if has_room and is_long else 1
