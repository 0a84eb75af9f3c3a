"""A shuffler's side of `ghazi-shuffle`: it turns halves of messages into a heap in secret order.

Each of a study's two shufflers sees uniform numbers (`messages.py`). A shuffler gives nothing
before all nodes of the attempt have delivered: fewer nodes would protect the sum by less noise than
was promised.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence

from umpc.crypto.prg import SEED_BYTES, derive, digest
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc_papers.ghazi_shuffle.inbox import Inbox
from umpc_papers.ghazi_shuffle.messages import shuffle_messages

Seen = MutableMapping[int, bytes]
"""Node → a digest of what it delivered in this attempt, in this run or an earlier one."""


def place_of(study: Study, name: str) -> int:
    """0 for the first of a study's shufflers, which draws the order; 1 for the second.

    Raises: RemoteProtocolError.
    """
    names = [shuffler.name for shuffler in study.shufflers]
    if name not in names:
        raise RemoteProtocolError(
            f"the study names {' and '.join(names) or 'no'} shufflers, this is {name!r}"
        )
    return names.index(name)


def run_id(seed: bytes, attempt: bytes) -> bytes:
    """A name of the run, which tells whether two shufflers have one order, and nothing else."""
    return derive(seed, "run", attempt)


class ShufflerAttempt:
    """One run of one attempt at one shuffler.

    Args: seed: of the order. seen: what is kept between runs of the attempt.
    """

    def __init__(self, attempt: Attempt, name: str, seed: bytes, seen: Seen):
        if len(seed) != SEED_BYTES:
            raise EncodingError(f"a seed has {SEED_BYTES} bytes, {len(seed)} came")
        self.attempt, self.place = attempt, place_of(attempt.study, name)
        self._seed, self._seen = seed, seen
        self._records = [member.records for member in attempt.members]
        self._messages = shuffle_messages(attempt.study, attempt.counts)
        self._messages.check_sizes([member.name for member in attempt.members], attempt.counts)
        self._delivered: dict[int, bytes] = {}
        self._given = False

    def __repr__(self) -> str:
        return f"ShufflerAttempt(attempt {self.attempt.id.hex()[:8]}, <redacted>)"

    def inbox(self, node: int) -> Inbox:
        """For a node's frames."""
        return self._messages.inbox(self.place, node, self._records[node])

    def deliver(self, node: int, message: bytes) -> None:
        """A node's whole message; the same once more changes nothing.

        Raises: RemoteProtocolError naming the node, where it delivered another message in this
        attempt before, or a message that does not decode.
        """
        name = self.attempt.members[node].name
        if self._seen.setdefault(node, digest(message)) != digest(message):
            raise RemoteProtocolError(
                f"{name} delivered two different messages in one attempt",
                culprit=name,
                step="release",
            )
        try:
            _ = self._messages.rows(self.place, message, self._records[node])
        except EncodingError as error:
            raise RemoteProtocolError(
                f"{name} delivered a malformed message: {error.message}",
                culprit=name,
                step="release",
            ) from error
        self._delivered[node] = message

    @property
    def missing(self) -> Sequence[str]:
        """The nodes that have not delivered."""
        return [
            member.name
            for node, member in enumerate(self.attempt.members)
            if node not in self._delivered
        ]

    def heap(self) -> Iterator[Frame]:
        """The heap for the coordinator, once, in chunks that are made as they are asked for.

        Raises: LocalProtocolError before all nodes have delivered.
        """
        if self.missing or self._given:
            raise LocalProtocolError(
                "a heap is given once, when all nodes of the attempt have delivered"
            )
        self._given = True
        messages = [self._delivered[node] for node in range(len(self._records))]
        return self._messages.heap(self.place, messages, self._records, self._seed)
