"""The call by which a node or the coordinator hears a dealer's one answer about an attempt.

The coordinator passes on what all nodes have signed, and a node says nothing. The dealer gives both
the same answer, when it has the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Never

from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.identity import Identity
from umpc.transport.stream import RpcStream
from umpc.transport.tls import dealer_stub

STEP = "evaluate"
PATIENCE_SECONDS = 15
"""How much longer than a step this side waits for the answer: longer than the dealer does."""
FRAMES_AHEAD = 4
"""Messages that may wait unread; gRPC's flow control then holds the dealer back."""


class AnswerCall:
    """One call to a dealer.

    Args:
        dealer: its name and address.
        seconds: of the study's steps.
        attempt: its id.
        statements: the coordinator's; a node has none.
    """

    def __init__(
        self,
        dealer: tuple[str, str],
        seconds: float,
        attempt: bytes,
        statements: Sequence[bytes] = (),
    ):
        name, self._address = dealer
        self._seconds = seconds
        self._patience = seconds + PATIENCE_SECONDS
        self._request = pb.AnswerRequest(attempt=attempt, statements=statements)
        self._stream: RpcStream[Never, list[Any]] = RpcStream(
            name,
            STEP,
            codec.decode_frames,
            ahead=FRAMES_AHEAD,
            early_end="ended before its whole answer had come",
        )

    async def connect(self, identity: Identity) -> None:
        """Connect to the dealer. Raises: PeerUnavailable, CertificateError."""
        await self._stream.connect(identity, "dealer", self._address, self._seconds)

    async def hear(self, hear: Callable[[Any, bytes], bool]) -> None:
        """Ask, and take frames until `hear` has the last one. It also gets the certificate.

        Raises: the dealer's own failure, PeerLost, StepTimeout, RemoteProtocolError.
        """
        self._stream.begin(dealer_stub(self._stream.channel).Answer(self._request))
        is_complete = False
        while not is_complete:
            for frame in await self._stream.next(STEP, self._patience):
                is_complete = hear(frame, self._stream.certificate)

    async def close(self) -> None:
        """Hang up."""
        await self._stream.close()
