"""The delivery of one run to the study's shufflers: reached before the charge, sent after it."""

from __future__ import annotations

from collections.abc import Sequence

from umpc.errors import LocalProtocolError
from umpc.node.attempts.delivery import ShufflerStreams
from umpc.node.attempts.run_compute import RunCompute
from umpc.node.attempts.site import Site
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.sizes import Member


class RunDelivery:
    """The streams of one run to shufflers, in studies that have any."""

    def __init__(self, compute: RunCompute):
        self._compute = compute
        self._streams: ShufflerStreams | None = None

    async def reach(
        self,
        site: Site,
        study: Study,
        attempt: bytes,
        members: Sequence[Member],
        openings: Sequence[bytes],
        signatures: Sequence[bytes],
    ) -> None:
        """Streams to all shufflers, each of which has then derived the attempt and waits."""
        self._streams = ShufflerStreams(study, attempt, members, openings, signatures)
        await site.open_delivery(self._streams)

    async def reach_again(self, site: Site, study: Study, kept: m.Delivery) -> None:
        """Streams as of `reach`, for a message that an earlier run kept."""
        facts = kept.attempt, kept.members, kept.openings, kept.signatures
        await self.reach(site, study, *facts)

    def check(self) -> None:
        """Check that the shufflers take what goes to them. Raises: PeerLost where one is gone."""
        self._reached().check()

    async def send(self, site: Site, study: Study, kept: m.Delivery) -> tuple[m.StepBytes, ...]:
        """The kept message to all shufflers, until each has its part."""
        streams = self._reached()
        node = study.index_of(site.name)
        places = range(len(study.shufflers))
        frames = await self._compute.in_thread(
            lambda: [
                list(protocol_of(study).delivered(place, node, study, kept)) for place in places
            ]
        )
        return await streams.send(frames)

    def _reached(self) -> ShufflerStreams:
        if self._streams is None:
            raise LocalProtocolError("the shufflers were not reached before the charge")
        return self._streams

    def close(self) -> None:
        """Hang up; the channels close in the background."""
        if self._streams:
            self._streams.close()
