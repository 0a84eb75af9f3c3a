"""Protocols in which a node sends one message of its own records and talks to no other node.

A message is bytes of a length that follows from how many records the node has of each class, in an
order of records that only the node knows. Each protocol's `messages.py` says what the bytes are.

*One message node.* The node's side of a protocol in which it sends one message.

The records are randomised once. A second message about the same records would be a second ε: the
ledger pays for the first, and the stored message is sent again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import inf, nan
from typing import Protocol

import numpy as np

from umpc.crypto.prg import Stream
from umpc.crypto.signing import Credentials
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError, RangeError
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.seed_agreement import Entropy
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.making_report import Limits
from umpc.study.messages import MAX_PAYLOAD
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns


class MessageEstimate(Protocol):
    """An estimate, and the law of its noise, from which the report's interval follows.

    step: the distance of the noise's possible values; 0 where they have no grid.
    shape: 1 for Laplace noise, k for the sum of k equal Laplace laws, and `NORMAL_SHAPE` of
        `umpc/dp/calibration.py` for normal noise. At 95 % the interval of 1 is the longest of
        these, so it holds the others, too; at 90 % it does not. 0 is another law
        (`umpc/ustat/error_law.py`), whose interval is too short for all of these.
    """

    @property
    def value(self) -> float: ...
    @property
    def std(self) -> float: ...
    @property
    def step(self) -> float: ...
    @property
    def shape(self) -> float: ...


class Predictable(Protocol):
    """The part of a protocol that a planner needs."""

    def predicted_std(self, columns: Columns, first: int) -> float:
        """The standard deviation of the randomisation over records like these.

        Args: columns: the first class first. first: how many records are of the first class.
        """
        ...


class OneMessage(ABC):
    """A node's message, and the coordinator's estimate from all nodes' messages."""

    smaller_by: str = "fewer bins"
    """The advice to a study whose message would be too large."""

    @abstractmethod
    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        """A node's message.

        Args: columns: field → (records,) int64, the first class first. bits: the node's entropy.
        """

    @abstractmethod
    def message_bytes(self, counts: ClassCounts) -> int:
        """The size of the message of a node with so many records."""

    @abstractmethod
    def check(self, message: bytes, counts: ClassCounts) -> None:
        """Raises: EncodingError where a message does not decode."""

    @abstractmethod
    def aggregate(
        self, messages: Sequence[bytes], counts: Sequence[ClassCounts]
    ) -> MessageEstimate:
        """The estimate from all nodes' messages."""

    def possible(self, counts: Sequence[ClassCounts]) -> tuple[float, float]:
        """The least and the largest estimate that messages can give, but for 2^-64.

        Everything is possible unless a protocol says otherwise.
        """
        return -inf, inf

    def limits(self) -> Limits | None:
        """The value that the report's interval covers; None for the value on all sets."""
        return None

    def limits_by(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> Limits | None:
        """The limits, with what the messages themselves say of them."""
        return self.limits()

    @abstractmethod
    def predicted_std(self, columns: Columns, first: int) -> float:
        """The standard deviation of the randomisation, see `Predictable.predicted_std`."""

    def quantised(self, columns: Columns, first: int) -> float:
        """The statistic of the records' cells, which the estimate is near to.

        It is no number unless a protocol with bins says otherwise.
        """
        return nan


def check_size(messages: OneMessage, name: str, counts: ClassCounts) -> None:
    """Raises: RangeError where a message would be larger than one node may release."""
    size = messages.message_bytes(counts)
    # known before the run: it depends on public counts
    if size > MAX_PAYLOAD:
        raise RangeError(
            f"the message of {name} would have {size:,} bytes for its {sum(counts):,} records, at "
            f"most 1 MiB ({MAX_PAYLOAD:,} bytes) are possible; take {messages.smaller_by}, or "
            f"split its table over several nodes",
            culprit=name,
        )


def uniform_std(study: Study, counts: Sequence[ClassCounts], messages: Predictable) -> float:
    """The standard deviation of the randomisation, for records uniform between their bounds.

    It depends on the data, which nobody has before the study. Other data give a value of that size.
    """
    # a fixed public stream: these records are made up
    columns = uniform_columns(study, sum(map(sum, counts)), Stream(bytes(32)))
    return messages.predicted_std(columns, sum(first for first, _ in counts))


def uniform_columns(study: Study, records: int, stream: Stream) -> dict[str, np.ndarray]:
    """Made-up records of the study's fields, uniform between their bounds."""
    columns = {}
    for field in study.schema:
        # 63 bits, so that they fit int64
        values = (stream.words(records) >> np.uint64(1)).astype(np.int64)
        span = field.upper_units - field.lower_units + 1
        columns[field.name] = field.lower_units + values % span
    return columns


# --- one message node -----------------------------------------------------------------------------


class OneMessageNode(NodeSide):
    """One node, one study, one attempt.

    Args: messages: the protocol's messages; the others as in SeedAgreement.

    Raises: RangeError where the message would be too large to be released.
    """

    def __init__(
        self,
        own: Credentials,
        study: Study,
        columns: Columns,
        records: int,
        entropy: Entropy,
        messages: OneMessage,
    ):
        super().__init__(own, study, columns, records, entropy)
        self._messages = messages
        check_size(messages, own.name, self._member.classes)
        self._message: bytes | None = None
        self._is_released = False

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        self._attempt = self._begin(openings)
        return self._attempt

    def own_steps(self) -> Iterator[None]:
        """The message, at one step."""
        if self._attempt is None or self._message is not None:
            raise LocalProtocolError("records are randomised once, after the attempt has begun")
        # once: a second randomisation would be a second ε
        self._message = self._make_message()
        yield

    def _make_message(self) -> bytes:
        return self._messages.randomise(self.columns, self._member.classes, self._random_bits)

    def release(self) -> m.Released:
        """The message, once."""
        if self._message is None or self._is_released:
            raise LocalProtocolError(
                "the message is released once, after the records were randomised"
            )
        self._is_released = True
        return self._released(self._message)
