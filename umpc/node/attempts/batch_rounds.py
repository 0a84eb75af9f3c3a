"""The rounds of chunks that one node computes together; each chunk keeps its own messages.

Every message of a round is sent before any of that round is waited for (`umpc/mpc/waves.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from umpc.crypto.rounds import Finished, Message, check_reply
from umpc.errors import LocalProtocolError
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.tasks import Heard, Said
from umpc.node.attempts.peers import PeerLink, all_of
from umpc.study.frames import frame_of, key_of


class BatchRounds:
    """The rounds of one batch over links.

    Args:
        node: this node's index.
        batch: chunks with the same plan, in which this node is the same party.
        after: computes what this node says after all messages so far, as `TaskRounds.after` does.
    """

    def __init__(
        self,
        attempt: SharedAttempt,
        node: int,
        links: Mapping[int, PeerLink],
        batch: Sequence[Chunk],
        after: Callable[[Heard], Awaitable[Said]],
    ):
        self._batch = batch
        self._after = after
        self._plan = attempt.plan(batch[0])
        self._own = batch[0].parties.index(node)
        self._others = [
            [(party, links[other]) for party, other in enumerate(chunk.parties) if other != node]
            for chunk in batch
        ]

    async def finish(self, said: Said) -> list[list[int]]:
        """Do all rounds and return each chunk's result. Args: said: the messages of round 1."""
        heard: Heard = ()
        while isinstance(said, list):
            replies = await self._exchange(len(heard) + 1, said)
            heard = (*heard, replies)
            said = await self._after(heard)
        if not isinstance(said, Finished):
            raise LocalProtocolError("a batch says one message for each of its chunks")
        results: list[list[int]] = said.result
        return results

    async def _exchange(
        self, round_number: int, messages: Sequence[Message]
    ) -> tuple[tuple[Message, ...], ...]:
        """Do one round. Returns: for each chunk the other owners' messages, in party order."""
        for chunk, others, message in zip(self._batch, self._others, messages, strict=True):
            if message.width:
                frame = frame_of(message, chunk.place, chunk.number)
                for _, link in others:
                    await link.send(frame)
        failpoint("during-rounds")
        due = self._due(round_number)
        chunks = list(zip(self._batch, self._others, due, strict=True))
        came = await all_of(
            [
                (link, key_of(shape, chunk.place, chunk.number))
                for chunk, others, shapes in chunks
                for (_, link), shape in zip(others, shapes, strict=True)
                if shape.width
            ]
        )
        rest = iter(came)
        replies = []
        for _, others, shapes in chunks:
            of_chunk = [next(rest).message if shape.width else shape for shape in shapes]
            for (_, link), shape, reply in zip(others, shapes, of_chunk, strict=True):
                check_reply(reply, shape, link.peer)
            replies.append(tuple(of_chunk))
        return tuple(replies)

    def _due(self, round_number: int) -> list[list[Message]]:
        """The other owners' messages of a round with zero bytes as content, for each chunk."""
        made: dict[tuple[int, int], Message] = {}
        for chunk, others in zip(self._batch, self._others, strict=True):
            for party, _ in others:
                if (party, chunk.count) not in made:
                    made[party, chunk.count] = self._plan.shape_to(
                        round_number, party, self._own, chunk.count
                    )
        return [
            [made[party, chunk.count] for party, _ in others]
            for chunk, others in zip(self._batch, self._others, strict=True)
        ]
