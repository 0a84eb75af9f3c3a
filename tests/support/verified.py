"""One attempt of the grid where nodes may lie, between whose real sides a test stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from tests.support.grid import GridRun
from umpc.crypto import field
from umpc.dealer.server import AskedAttempt
from umpc.errors import UmpcError
from umpc.protocols.grid.masked_form import masked_forms
from umpc.simulation import AUTHORITY
from umpc.study.messages import Frame
from umpc.transport.tls import Peer

Change = Callable[[int, Frame], Frame]
"""A node's place and a frame that it sends or gets → the frame that comes."""
COORDINATOR = Peer("coordinator", "coordinator")
DEALER = AUTHORITY.credentials("dealer", "dealer")


def unchanged(place: int, frame: Frame) -> Frame:
    """An honest process."""
    return frame


def raised(frame: Frame, word: int = 0, by: int = 1) -> Frame:
    """A frame of words of F, one of which is larger."""
    words = np.frombuffer(frame.payload, dtype="<u8").astype(np.uint64)
    words[word] = (int(words[word]) + by) % field.P
    return replace(frame, payload=words.astype("<u8").tobytes())


class VerifiedRun(GridRun):
    """The parties of one attempt: coordinator, nodes, and the dealer behind its server's door."""

    @property
    def adding(self):
        """The coordinator's total."""
        return self.coordinator.aggregation

    @property
    def tables(self):
        """The nodes' tables, in the nodes' order."""
        return [node.table for node in self.nodes]

    def up(
        self,
        change: Change = unchanged,
        *,
        liar: int = 0,
        lie: AbstractContextManager | None = None,
    ) -> VerifiedRun:
        """One exchange of all nodes to the coordinator. Args: lie: in which the liar computes."""
        for place, table in enumerate(self.tables):
            with lie if lie is not None and place == liar else nullcontext():
                frames = [change(place, frame) for frame in table.masked()]
            for frame in frames:
                self.adding.add(place, frame)
        self.adding.end_exchange()
        return self

    def down(self, change: Change = unchanged) -> VerifiedRun:
        """One exchange of the coordinator to all nodes."""
        for place, table in enumerate(self.tables):
            for frame in self.adding.told(place):
                table.take(change(place, frame))
        return self

    @property
    def total_bytes(self) -> bytes:
        """The honest total."""
        return b"".join(frame.payload for frame in self.adding.total())

    @property
    def answered(self) -> bool:
        """Whether the dealer has answered."""
        return self.adding.answer.is_complete

    def questions(self, totals: Sequence[bytes]) -> list[bytes]:
        """Statements as a coordinator asks them that told each node a total of its own."""
        transcript = self.adding.transcript
        return [
            said.statement(transcript.root(total)).encode() + said.signature.data
            for said, total in zip(transcript.said, totals, strict=True)
        ]

    def ask(self, questions: Sequence[bytes] | None = None) -> VerifiedRun:
        """The dealer's answer to everybody. Args: questions: by default the honest ones."""
        for frame in self.answer(questions):
            for hearing in (*self.tables, self.adding):
                hearing.hear(frame, DEALER.certificate)
        return self

    def answer(self, questions: Sequence[bytes] | None = None) -> list[Frame]:
        """The dealer's answer, which nobody has heard. Args: as of `ask`."""
        asked = list(self.adding.questions if questions is None else questions)

        async def answer() -> list[Frame]:
            one = AskedAttempt(self.attempt, self.dealing, AUTHORITY.verify, DEALER.sign)
            return await one.answer(COORDINATOR, asked)

        return asyncio.run(answer())

    @property
    def signatures(self) -> list[bytes]:
        """All nodes' last signatures."""
        return [table.sign() for table in self.tables]

    def up_to_answer(self) -> VerifiedRun:
        """Everything before the last signatures, among honest processes."""
        return self.prepare().count().up().down().up().ask().down()

    def verdicts(self, signatures: Sequence[bytes] | None = None) -> list[UmpcError | None]:
        """How each node's own check ends, behind a coordinator that checks nothing itself."""
        told = self.signatures if signatures is None else signatures
        return [_ended(lambda one=table: one.confirm(told)) for table in self.tables]

    def put(self, place: int, change: Callable[[np.ndarray], None]) -> None:
        """Let a node mask another table than its own. Args: change: it changes the table itself."""
        grid = self.attempt.grid
        table = grid.tabulate(self.nodes[place].columns)
        change(table)
        forms = masked_forms(grid, self.attempt.ring)
        self.tables[place].put(table, [form.own(table) for form in forms])

    def put_records(self, place: int, cells: Sequence[int]) -> None:
        """Let a node list other cells, and count them in its table as far as they are in it."""
        found = np.array(cells, dtype=np.int64)

        def change(table: np.ndarray) -> None:
            inside = found[found < len(table)]
            table[:] = np.bincount(inside, minlength=len(table)).astype(np.uint64)

        self.put(place, change)
        self.tables[place].put_places(found)

    def cells_of(self, place: int) -> list[int]:
        """The cells of a node's records."""
        return self.attempt.grid.cell_of(self.nodes[place].columns).tolist()


def _ended(step: Callable[[], None]) -> UmpcError | None:
    try:
        step()
    except UmpcError as error:
        return error
    return None
