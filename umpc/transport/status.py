"""Errors as gRPC statuses, and gRPC statuses as errors.

The text of a status is "ClassName: sentence", or "ClassName [culprit]: sentence", so the other side
raises the same class. The `detail` of an error is never sent. A node may accuse anybody, so its
word about a culprit is not believed; that of a dealer or a shuffler is.
"""

from __future__ import annotations

from umpc.errors import (
    CertificateError,
    ConfigError,
    DataError,
    DpError,
    EncodingError,
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
from umpc.transport.tls import grpc

_STATUS = {
    DpError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    DataError: grpc.StatusCode.FAILED_PRECONDITION,
    ConfigError: grpc.StatusCode.FAILED_PRECONDITION,
    StudyError: grpc.StatusCode.INVALID_ARGUMENT,
    EncodingError: grpc.StatusCode.INVALID_ARGUMENT,
    RemoteProtocolError: grpc.StatusCode.ABORTED,
    ImpossibleResult: grpc.StatusCode.DATA_LOSS,
    StudyAborted: grpc.StatusCode.ABORTED,
    PreparationError: grpc.StatusCode.FAILED_PRECONDITION,
    StepTimeout: grpc.StatusCode.DEADLINE_EXCEEDED,
    CertificateError: grpc.StatusCode.PERMISSION_DENIED,
    PeerLost: grpc.StatusCode.ABORTED,
    PeerUnavailable: grpc.StatusCode.ABORTED,
    LocalProtocolError: grpc.StatusCode.INTERNAL,
}


def status_of(error: UmpcError) -> tuple[grpc.StatusCode, str]:
    """Return the status and the public text of an error."""
    culprit = f" [{error.culprit}]" if error.culprit else ""
    text = f"{type(error).__name__}{culprit}: {error.message}"
    for cls in type(error).__mro__:
        if cls in _STATUS:
            return _STATUS[cls], text
    return grpc.StatusCode.UNKNOWN, text


def error_of(
    failure: grpc.aio.AioRpcError, peer: str, step: str, *, believed: bool = False
) -> UmpcError:
    """Return the error that a failed call stands for.

    Args: believed: whether the peer's word about the culprit counts; else the culprit is the peer.
    """
    head, _, text = (failure.details() or "").partition(": ")
    name, _, named = head.partition(" [")
    cls = error_classes().get(name)
    if cls is not None:
        culprit = named.removesuffix("]") if believed and named else peer
        return cls(f"{peer}: {text}", culprit=culprit, step=step)
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
        case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED:
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
