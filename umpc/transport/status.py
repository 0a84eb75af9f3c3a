"""Errors across gRPC: one table from class to status, and the way back.

The status text is "ClassName: sentence", so the other side raises the same class. Details never travel.
"""

from __future__ import annotations

from umpc.errors import (
    CertificateError,
    ConfigError,
    DataError,
    DpError,
    EncodingError,
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
    StudyAborted: grpc.StatusCode.ABORTED,
    PreparationError: grpc.StatusCode.FAILED_PRECONDITION,
    StepTimeout: grpc.StatusCode.DEADLINE_EXCEEDED,
    CertificateError: grpc.StatusCode.PERMISSION_DENIED,
    PeerLost: grpc.StatusCode.ABORTED,
    PeerUnavailable: grpc.StatusCode.ABORTED,
    LocalProtocolError: grpc.StatusCode.INTERNAL,
}


def status_of(error: UmpcError) -> tuple[grpc.StatusCode, str]:
    """Status and public text of an error."""
    for cls in type(error).__mro__:
        if cls in _STATUS:
            return _STATUS[cls], f"{type(error).__name__}: {error.message}"
    return grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error.message}"


def error_of(failure: grpc.aio.AioRpcError, peer: str, step: str) -> UmpcError:
    """What a failed call means, with the peer as culprit unless the peer blamed somebody else."""
    name, _, text = (failure.details() or "").partition(": ")
    cls = error_classes().get(name)
    if cls is not None:
        return cls(f"{peer}: {text}", culprit=peer, step=step)
    broken = (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,  # ours names a class; without one it is gRPC's own word for a stream that broke
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
    return PeerLost(
        f"{peer} went away in step {step}: its connection broke or stopped answering; see that it runs, then run "
        f"the study again",
        culprit=peer,
        step=step,
        detail=str(detail),
    )
