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

from typing import Any

from umpc.errors import (
    CertificateError,
    ConfigError,
    DataError,
    DpError,
    EncodingError,
    FailedCheck,
    ImpossibleResult,
    LocalProtocolError,
    MessageRefused,
    PeerLost,
    PeerUnavailable,
    PreparationError,
    RemoteProtocolError,
    StepTimeout,
    StudyAborted,
    StudyError,
    UmpcError,
    told_class,
)
from umpc.transport.stream_reader import lost
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
    MessageRefused: grpc.StatusCode.FAILED_PRECONDITION,
}
BROKEN_OFF = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
)
"""Without a class name, gRPC itself sent such a status: the stream broke."""
REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
"""The first one is of a certificate of this process that expired, or was revoked."""
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
    cls = told_class(name) if name.isidentifier() else None
    if cls is not None:
        said: Any = (failure.trailing_metadata() or ()) if believed else ()
        blame = {key: word for key, word in said if isinstance(word, str)}
        culprit, at = blame.get(CULPRIT) or peer, blame.get(STEP) or step
        is_named = text.startswith((f"{peer}: ", f"{peer} ", f"{peer}'s "))
        return cls(text if is_named else f"{peer}: {text}", culprit=culprit, step=at)
    code, details = failure.code(), failure.details()
    if code in BROKEN_OFF:
        return lost(peer, step, f"{code.name}: {details}")
    if code in REFUSED:
        is_ours = code is grpc.StatusCode.UNAUTHENTICATED
        what = f"{peer} refused this process's certificate: {details}"
        return CertificateError(what, culprit=own if is_ours else peer)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return StepTimeout(f"{peer} did not finish step {step} in time", culprit=peer, step=step)
    what = f"{details} in step {step}"
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        what = f"a message exceeded the size limit in step {step}"
    return RemoteProtocolError(f"{peer}: {what}", culprit=peer, step=step)


# --- call end -------------------------------------------------------------------------------------
