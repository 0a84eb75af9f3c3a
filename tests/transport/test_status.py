"""umpc.transport.status: who is at fault, as a dealer or a shuffler says it."""

from __future__ import annotations

import pytest

from umpc.errors import ApprovalPending, RemoteProtocolError, UmpcError
from umpc.transport.status import blame_of, error_of, status_of
from umpc.transport.tls import grpc


def failed(error: UmpcError) -> grpc.aio.AioRpcError:
    """The error as it arrives at the process that called."""
    code, text = status_of(error)
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(*blame_of(error)), details=text
    )


def test_the_word_of_a_dealer_on_who_is_at_fault_counts():
    error = RemoteProtocolError("what came is wrong", culprit="south", step="agree")
    found = error_of(failed(error), "dealer", "prepare", believed=True)
    assert (found.culprit, found.step) == ("south", "agree")
    assert found.message == "dealer: what came is wrong"


def test_a_node_that_blames_another_is_named_itself():
    error = RemoteProtocolError("what came is wrong", culprit="south", step="agree")
    found = error_of(failed(error), "north", "prepare")
    assert (found.culprit, found.step) == ("north", "prepare")


@pytest.mark.parametrize("culprit", [None, "", "söuth", "so\nuth"])
def test_without_a_name_that_fits_metadata_the_process_that_failed_is_named(culprit):
    error = RemoteProtocolError("what came is wrong", culprit=culprit)
    found = error_of(failed(error), "dealer", "prepare", believed=True)
    assert (found.culprit, found.step) == ("dealer", "prepare")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("north calls nobody", "north calls nobody"),
        ("north: it waits", "north: it waits"),
        ("north's administrator rejected it", "north's administrator rejected it"),
        ("northern sites wait", "north: northern sites wait"),
    ],
)
def test_a_peers_name_stands_once_in_its_error(text, told):
    assert error_of(failed(ApprovalPending(text)), "north", "contact").message == told
