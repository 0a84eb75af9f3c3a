"""The node's stream to a study's coordinator: which message is due, and deadlines for it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from umpc import logs
from umpc.errors import (
    EncodingError,
    LocalProtocolError,
    RemoteProtocolError,
    StepTimeout,
)
from umpc.protocols.registry import allowed_as, protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.transport.certificates import SignedIn
from umpc.transport.patience import time_limit

log = logging.getLogger("umpc.node")
Expected = TypeVar("Expected")

PATIENCE_SECONDS = 10
"""How much longer than a step a node waits for the coordinator.

The coordinator itself waits for the slowest node.
"""


class CoordinatorStream:
    """Args:
    name: this node's.
    coordinator: the name in the caller's certificate.
    receive: the coordinator's next message.
    send: one message to the coordinator.
    signed_in: who stands behind the certificate, if it is one for hours.
    check_certificate: raises CertificateError once that certificate has ended or was revoked.
    """

    def __init__(
        self,
        name: str,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
        signed_in: SignedIn | None = None,
        check_certificate: Callable[[], object] = lambda: None,
    ):
        self.name = name
        self.coordinator = coordinator
        self.signed_in = signed_in
        self.check_certificate = check_certificate
        self._receive = receive
        self.send = send
        self.proposed: Study | None = None
        self.step = "propose"
        """The present step of the study."""
        self.answering = False
        """The last message is on its way: the coordinator may hang up before its sender knows."""
        self.answered = False
        """The share is out, or the study waits prepared.

        Whatever the coordinator does now, this run is complete here.
        """
        self.aborted = False
        """The coordinator said that the study ends, even if it is parked."""
        self.keeps = False
        """The coordinator said that a held attempt stays."""
        self.unreadable: EncodingError | None = None
        """The coordinator sent bytes that are no message."""

    @property
    def study(self) -> Study:
        """The study, once it is proposed."""
        if self.proposed is None:
            raise LocalProtocolError("no study is proposed yet", step=self.step)
        return self.proposed

    async def expect(
        self,
        kind: type[Expected] | tuple[type[Expected], ...],
        seconds: float | None = None,
    ) -> Expected:
        """The coordinator's next message, which must be of this kind, or of one of these.

        Raises: StepTimeout, RemoteProtocolError.
        """
        if seconds is None:
            seconds = self.study.seconds_per_step + PATIENCE_SECONDS
        try:
            async with time_limit(seconds):
                message = await self._receive()
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.coordinator} did not continue after step {self.step}",
                culprit=self.coordinator,
                step=self.step,
            ) from error
        if not isinstance(message, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            due = " or ".join(each.__name__ for each in kinds)
            raise RemoteProtocolError(
                f"{self.coordinator} sent {type(message).__name__} where {due} was due",
                culprit=self.coordinator,
                step=self.step,
            )
        return message

    async def send_last(self, message: m.NodeMessage) -> None:
        """Send the message after which this run is complete here."""
        self.answering = True
        await self.send(message)
        self.answered = True

    async def send_release(self, message: m.Released) -> None:
        """Send what is released: the last message, unless the protocol asks afterwards."""
        asks = protocol_of(self.study).questions_of(self.study)
        await (self.send if asks else self.send_last)(message)

    async def tell(self, done: int, total: int) -> None:
        """Report progress of the present step."""
        await self.send(m.Progress(self.step, done, total))

    def check_caller(self) -> None:
        """Raises: StudyError, RemoteProtocolError where the study is not the caller's."""
        study = self.study
        study.index_of(self.name)
        if study.coordinator != self.coordinator:
            raise RemoteProtocolError(
                f"the study names {study.coordinator!r} as its coordinator, its certificate says "
                f"{self.coordinator!r}",
                culprit=self.coordinator,
                step="propose",
            )
        if self.signed_in is not None:
            self.signed_in.check(allowed_as(study), self.coordinator)

    def log_disclosure(self, records: int) -> None:
        """Write to the log, each time, that raw records leave, where the protocol discloses any."""
        disclosed = protocol_of(self.study).discloses(self.study)
        if disclosed:
            log.info(
                "study %s: RAW RECORDS leave: %s of all %d records, shown to %s, a trusted curator",
                self.label,
                ", ".join(disclosed),
                records,
                self.coordinator,
            )

    def place(self) -> logs.Place:
        """The study and the step, for the lines of the log."""
        study = self.proposed.hash.hex()[: logs.DIGITS] if self.proposed else ""
        return study, self.step

    @property
    def label(self) -> str:
        """The study's name and the beginning of its hash, for the log."""
        missing = self.study.names_missing
        without = f" without {', '.join(missing)}" if missing else ""
        return f"{self.study.name!r} ({self.study.hash.hex()[:8]}){without}"
