"""The total of all nodes' masked vectors, at one node: its own up, the total down, then signatures.

All of it is part of *evaluate*, in protocols whose side has an aggregation
(`umpc/protocols/base/aggregation.py`). A node holds one frame at a time besides what its side
keeps: gRPC's flow control holds a faster sender back.
"""

from __future__ import annotations

from collections.abc import Iterator

from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.protocols.base.aggregation import NodeAggregation
from umpc.study import messages as m
from umpc.study.frames import Frame


async def add_up(
    stream: CoordinatorStream, runner: AttemptRunner, aggregation: NodeAggregation
) -> None:
    """Send this node's masked vector, and take the total that all nodes have signed.

    Raises: RemoteProtocolError, StepTimeout naming the coordinator.
    """
    compute = runner.compute.briefly
    frames = aggregation.masked()
    while (frame := await compute(_next, frames)) is not None:
        await stream.send(m.Part(frame))
        runner.traffic.count_with_coordinator(frame)
        failpoint("during-histogram")
    failpoint("after-histogram")
    is_complete = False
    while not is_complete:
        part = await stream.expect(m.Part)
        runner.traffic.count_with_coordinator(part.frame)
        is_complete = await compute(aggregation.take, part.frame)
        failpoint("during-total")
    await stream.send(m.TotalSigned(await compute(aggregation.sign)))
    failpoint("after-total")
    confirmed = await stream.expect(m.TotalConfirmed)
    await compute(aggregation.confirm, confirmed.signatures)


def _next(frames: Iterator[Frame]) -> Frame | None:
    """Return the next frame; None after the last one."""
    return next(frames, None)
