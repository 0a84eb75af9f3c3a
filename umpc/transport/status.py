"""Errors as gRPC statuses, and gRPC statuses as errors.

The text of a status is "ClassName: sentence", so the other side raises the same class. The `detail`
of an error is never sent. The culprit and the step go with it as metadata. A node may accuse
anybody, so its word about a culprit is not believed; that of a dealer or a shuffler is.

*Call end.* The client's end of a gRPC call, which keeps the status that the peer ended the call
with.

Where a write fails because the call has ended, gRPC sets a status of its own, "Internal error from
Core", and the call counts as ended. Then `read` of gRPC asks for no further message, although some
wait, and the peer's status comes only behind them. Or the peer's has come, and gRPC's replaces it.
So this end reads by gRPC's iterator, which stops at the last message only. It keeps the first
status, of which gRPC tells its callbacks, and looks for a later one where that was gRPC's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from umpc.errors import (
    CertificateError,
    ConfigError,
    DataError,
    DpError,
    EncodingError,
    FailedCheck,
    ImpossibleResult,
    LocalProtocolError,
    PeerLost,
    PeerUnavailable,
    PreparationError,
    RemoteProtocolError,
    StepTimeout,
    StudyAborted,
    StudyError,
    UmpcError,
    error_classes,
)
from umpc.transport.services import EOF
from umpc.transport.tls import grpc


class LocalFailure(grpc.aio.AioRpcError):
    """A failure that this process found itself, where a caller expects one of gRPC."""

    def __init__(self, error: UmpcError):
        code, text = status_of(error)
        super().__init__(code, grpc.aio.Metadata(), grpc.aio.Metadata(), text, None)
        self.error = error


_STATUS = {
    DpError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    DataError: grpc.StatusCode.FAILED_PRECONDITION,
    ConfigError: grpc.StatusCode.FAILED_PRECONDITION,
    StudyError: grpc.StatusCode.INVALID_ARGUMENT,
    EncodingError: grpc.StatusCode.INVALID_ARGUMENT,
    RemoteProtocolError: grpc.StatusCode.ABORTED,
    ImpossibleResult: grpc.StatusCode.DATA_LOSS,
    FailedCheck: grpc.StatusCode.ABORTED,
    StudyAborted: grpc.StatusCode.ABORTED,
    PreparationError: grpc.StatusCode.FAILED_PRECONDITION,
    StepTimeout: grpc.StatusCode.DEADLINE_EXCEEDED,
    CertificateError: grpc.StatusCode.PERMISSION_DENIED,
    PeerLost: grpc.StatusCode.ABORTED,
    PeerUnavailable: grpc.StatusCode.ABORTED,
    LocalProtocolError: grpc.StatusCode.INTERNAL,
}
CULPRIT, STEP = "umpc-culprit", "umpc-step"
"""The metadata in which a dealer or a shuffler says who is at fault."""


def status_of(error: UmpcError) -> tuple[grpc.StatusCode, str]:
    """Return the status and the public text of an error."""
    text = f"{type(error).__name__}: {error.message}"
    for cls in type(error).__mro__:
        if cls in _STATUS:
            return _STATUS[cls], text
    return grpc.StatusCode.UNKNOWN, text


def refusal_of(error: UmpcError, caller: str) -> tuple[grpc.StatusCode, str, Any]:
    """Return the status, text and metadata for a caller, who is at fault where no message came."""
    if isinstance(error, EncodingError):
        error.culprit = error.culprit or caller
    return (*status_of(error), blame_of(error))


def blame_of(error: UmpcError) -> tuple[tuple[str, str], ...]:
    """Return who is at fault and in which step, for the metadata that goes with a status."""
    pairs = (CULPRIT, error.culprit or ""), (STEP, error.step or "")
    return tuple((key, word) for key, word in pairs if word.isascii() and word.isprintable())


def error_of(
    failure: grpc.aio.AioRpcError,
    peer: str,
    step: str,
    own: str | None = None,
    *,
    believed: bool = False,
) -> UmpcError:
    """Return the error that a failed call stands for, with the peer as its culprit.

    Its text begins with the peer's name, once.

    Args:
        own: the name of this process, the culprit if the peer refused its certificate.
        believed: the peer is a dealer or a shuffler, whose word counts on who is at fault.
    """
    if isinstance(failure, LocalFailure):
        failure.error.step = failure.error.step or step
        return failure.error
    name, _, text = (failure.details() or "").partition(": ")
    cls = error_classes().get(name) if name.isidentifier() else None
    if cls is not None:
        said: Any = (failure.trailing_metadata() or ()) if believed else ()
        blame = {key: word for key, word in said if isinstance(word, str)}
        culprit, at = blame.get(CULPRIT) or peer, blame.get(STEP) or step
        is_named = text.startswith((f"{peer}: ", f"{peer} ", f"{peer}'s "))
        return cls(text if is_named else f"{peer}: {text}", culprit=culprit, step=at)
    broken = (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        # Without a class name, gRPC itself sent this status: the stream broke.
        grpc.StatusCode.INTERNAL,
    )
    match failure.code():
        case code if code in broken:
            return lost(peer, step, f"{failure.code().name}: {failure.details()}")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return StepTimeout(
                f"{peer} did not finish step {step} in time", culprit=peer, step=step
            )
        case grpc.StatusCode.UNAUTHENTICATED:  # our certificate is expired or revoked
            return CertificateError(
                f"{peer} refused this process's certificate: {failure.details()}", culprit=own
            )
        case grpc.StatusCode.PERMISSION_DENIED:
            return CertificateError(
                f"{peer} refused this process's certificate: {failure.details()}", culprit=peer
            )
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return RemoteProtocolError(
                f"{peer}: a message exceeded the size limit in step {step}", culprit=peer, step=step
            )
    return RemoteProtocolError(
        f"{peer}: {failure.details()} in step {step}", culprit=peer, step=step
    )


def lost(peer: str, step: str, detail: object = "") -> PeerLost:
    """Return the error for a peer whose connection broke. `detail` is for the own log only."""
    return PeerLost(
        f"{peer} went away in step {step}: its connection broke or stopped answering; "
        "see that it runs, then run the study again",
        culprit=peer,
        step=step,
        detail=str(detail),
    )


# --- call end -------------------------------------------------------------------------------------

Known = TypeVar("Known")
OF_CORE = "Internal error from Core"
"""The text of the status that gRPC sets itself."""
REASON_SECONDS = 1.0
"""Seconds that a failure waits for the reason why its call ended."""
LOOK_SECONDS = 0.01
"""Seconds between two looks at a call's status."""


class Status(NamedTuple):
    """A status with which a call ended."""

    code: grpc.StatusCode
    details: str
    trailing: grpc.aio.Metadata

    @property
    def is_of_core(self) -> bool:
        """It is gRPC's own; a peer that sends the same words has no others."""
        return self.code is grpc.StatusCode.INTERNAL and self.details == OF_CORE

    def error(self) -> grpc.aio.AioRpcError:
        return grpc.aio.AioRpcError(
            self.code, grpc.aio.Metadata(), self.trailing, self.details, None
        )


class CallEnd:
    """One call's messages from the peer, and the reason why the peer ended it.

    Args: call: a `grpc.aio.Call` whose answer is a stream, of which nobody else reads.
    """

    def __init__(self, call: Any):
        self._call = call
        self._messages = call.__aiter__()
        self._said: Status | None = None
        call.add_done_callback(self._note)

    async def read(self) -> Any:
        """Return the next message, or EOF. Raises: AioRpcError with the peer's own status."""
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            return EOF
        except grpc.aio.AioRpcError as failure:
            reason = await self.reason(failure)
            if reason is None:
                return EOF
            if reason is failure:
                raise
            raise reason from failure

    async def reason(self, failure: grpc.aio.AioRpcError) -> grpc.aio.AioRpcError | None:
        """Return why the call ended, or None where the peer ended it well.

        It is the failure itself, unless gRPC made that and the peer's own status comes within
        REASON_SECONDS. Args: failure: of a read or a write.
        """
        clock = asyncio.get_running_loop().time
        shown = Status(failure.code(), failure.details() or "", grpc.aio.Metadata())
        until = clock() + REASON_SECONDS
        while shown.is_of_core and self._said is None and clock() < until:
            await asyncio.sleep(LOOK_SECONDS)
            self._note(self._call)
        if not shown.is_of_core or self._said is None:
            return failure
        return None if self._said.code is grpc.StatusCode.OK else self._said.error()

    def _note(self, call: Any) -> None:
        """Keep a call's status, if the peer said it."""
        code, details = _known(call.code()), _known(call.details())
        trailing = _known(call.trailing_metadata())
        if code is None or trailing is None or self._said is not None:
            return
        status = Status(code, details or "", trailing)
        if not status.is_of_core:
            self._said = status


def _known(asked: Coroutine[Any, Any, Known]) -> Known | None:
    """Return a fact of an ended call, for which nothing is waited; None if it has not ended."""
    try:
        asked.send(None)
    except StopIteration as found:
        known: Known = found.value
        return known
    asked.close()
    return None
