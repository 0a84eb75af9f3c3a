"""The bytes and rounds of one run, as the node reports them: before the data, and on the data."""

from __future__ import annotations

from collections import Counter

from umpc.node.attempts.run_links import RunLinks
from umpc.node.attempts.run_material import RunMaterial
from umpc.study import messages as m
from umpc.study.cost import sent_by_round
from umpc.study.frames import Frame


class RunTraffic:
    """The bytes and rounds of one run, with peers, dealer and coordinator."""

    def __init__(self, links: RunLinks, material: RunMaterial):
        self._links = links
        self._material = material
        self._bytes_before = 0
        self._with_coordinator: Counter[tuple[str, int]] = Counter()

    @property
    def bytes_offline(self) -> int:
        """Bytes received from the dealer and sent to peers before the data, whenever that was."""
        return self._bytes_before + self._material.bytes_received

    @property
    def bytes_online_by_round(self) -> tuple[m.StepBytes, ...]:
        """Bytes of each round on data that were sent to peers, and to and from the coordinator."""
        sent = self._with_coordinator.copy()
        for link in self._links.made.values():
            sent.update(link.sent)
        return sent_by_round(sent)

    @property
    def rounds_used(self) -> int:
        """The number of rounds on data."""
        links = self._links.made.values()
        between_nodes = {used for link in links for used in link.rounds_used}
        return len(between_nodes) + bool(self._with_coordinator)

    def count_earlier(self, sent: int) -> None:
        """Count bytes that this run needs and an earlier one sent: channels, coins, preparation."""
        self._bytes_before += sent

    def count_as_prepared(self) -> None:
        """All that was sent to other nodes so far needed no data."""
        for link in self._links.made.values():
            self._bytes_before += link.bytes_sent
            link.rounds_used.clear()
            link.sent.clear()

    def count_with_coordinator(self, frame: Frame) -> None:
        """Count a frame to or from the coordinator. A vector and its total are one round."""
        self._with_coordinator[frame.step, frame.round] += frame.wire_bytes
