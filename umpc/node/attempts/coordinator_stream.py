"""A study's words with its coordinator: whose turn it is, what is due, and what a run says of itself to others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from umpc.errors import RemoteProtocolError, StepTimeout
from umpc.study import messages as m
from umpc.study.document import Study

log = logging.getLogger("umpc.node")
T = TypeVar("T")

PATIENCE_SECONDS = 10
"""How much longer than a step a node waits for the coordinator, which waits for the slowest node itself."""


class CoordinatorStream:
    """Args: name: this node's. receive: the coordinator's next message. send: one message to the coordinator."""

    def __init__(
        self,
        name: str,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
    ):
        self.name, self.coordinator = name, coordinator
        self._receive, self.send = receive, send
        self.study: Study | None = None
        self.step = "propose"
        self.answered = False
        """The share is out, or the study is parked: whatever the coordinator does now, this run is complete here."""

    async def expect(self, kind: type[T], seconds: float | None = None) -> T:
        """The coordinator's next message, which must be of this kind."""
        try:
            async with asyncio.timeout(seconds or self.study.seconds_per_step + PATIENCE_SECONDS):
                message = await self._receive()
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.coordinator} did not continue after step {self.step}",
                culprit=self.coordinator,
                step=self.step,
            ) from error
        if not isinstance(message, kind):
            raise RemoteProtocolError(
                f"{self.coordinator} sent {type(message).__name__} where {kind.__name__} was due",
                culprit=self.coordinator,
                step=self.step,
            )
        return message

    async def tell(self, done: int, total: int) -> None:
        await self.send(m.Progress(self.step, done, total))

    def check_caller(self) -> None:
        study = self.study
        study.index_of(self.name)
        if study.coordinator != self.coordinator:
            raise RemoteProtocolError(
                f"the study names {study.coordinator!r} as its coordinator, its certificate says {self.coordinator!r}",
                culprit=self.coordinator,
                step="propose",
            )

    def log_raw_records(self, records: int) -> None:
        """A trusted curator is shown what nobody else is: the log says so, each time."""
        if self.study.central:
            fields = ", ".join(self.study.parsed_kernels[0].fields)
            told = (
                "study %s: RAW RECORDS leave: %s of all %d records, shown to %s, a trusted curator"
            )
            log.warning(told, self.label, fields, records, self.coordinator)

    @property
    def label(self) -> str:
        return f"{self.study.name!r} ({self.study.hash.hex()[:8]})"
