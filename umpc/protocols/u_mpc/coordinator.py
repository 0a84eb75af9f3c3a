"""The coordinator's part: it collects what nodes say, checks that they agree, and adds up the noisy shares.

It holds no secret, and learns uniform shares and the noisy result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from umpc.crypto.ring import RINGS, Ring
from umpc.errors import AlreadyReleased, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import Attempt
from umpc.protocols.u_mpc.noise_binding import attempt_of, noise_tails
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.report import Measured, Report, build_report
from umpc.study.sizes import Member, Sizes


class CoordinatorSession:
    """One study, one attempt. Lists are in the study's order of nodes."""

    def __init__(self, study: Study):
        self.study = study.check()
        self.names = [node.name for node in study.nodes]
        self._members: tuple[Member, ...] | None = None
        self._attempt: Attempt | None = None

    def propose(self, *, ahead: bool = False) -> m.Propose:
        """ahead: to prepare the study now, and run it later."""
        return m.Propose(self.study.encode(), ahead)

    def agree(self, answers: Sequence[m.Accepted | m.Released]) -> m.Agree | None:
        """Everybody's members to everybody; None where every node has released this study before.

        Raises: TooFewRecords, StudyError, RangeError where the study cannot be run over so many records.
        """
        released = [
            name for name, a in zip(self.names, answers, strict=True) if isinstance(a, m.Released)
        ]
        if len(released) == len(answers):
            return None
        if released:
            raise AlreadyReleased(
                f"the study {self.study.name!r} was released before by {', '.join(released)}, but not by all nodes, so "
                f"its shares do not add up; its epsilon is charged there; give the study a new name to run it anew"
            )
        for name, answer in zip(self.names, answers, strict=True):
            if answer.study_hash != self.study.hash or answer.member.name != name:
                raise RemoteProtocolError(
                    f"{name} answered for another study or under another name",
                    culprit=name,
                    step="propose",
                )
        members = tuple(answer.member for answer in answers)
        self._check_sizes(members)
        self._members = members
        return m.Agree(members)

    def _check_sizes(self, members: tuple[Member, ...]) -> None:
        """Whether the study can be run over so many records. Raises: as agree."""
        sizes = Sizes.of(self.study, members)
        sizes.ring(noise_tails(sizes))

    def begin(self, answers: Sequence[m.Opened]) -> m.Begin:
        """Everybody's openings to everybody."""
        if self._members is None or self._attempt is not None:
            raise LocalProtocolError("begin comes once, after agree")
        openings = tuple(answer.opening for answer in answers)
        self._attempt = attempt_of(self.study, self._members, openings)
        return m.Begin(openings)

    @property
    def attempt(self) -> Attempt:
        if self._attempt is None:
            raise LocalProtocolError("the attempt has not begun")
        return self._attempt

    def check_prepared(self, answers: Sequence[m.Prepared]) -> None:
        """All nodes must have derived the same attempt. Raises: RemoteProtocolError."""
        for name, answer in zip(self.names, answers, strict=True):
            if answer.attempt != self.attempt.id:
                raise RemoteProtocolError(
                    f"{name} derived another attempt from the same openings; is its software the same?",
                    culprit=name,
                    step="prepare",
                )

    def ask(self, answers: Sequence[m.Released]) -> m.Ask | None:
        """A question that follows from what all nodes released; None where the protocol has none."""
        return None

    def hear(self, answers: Sequence[m.Answer]) -> None:
        """The answers to the question."""
        raise LocalProtocolError("this protocol asks no question")

    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a run."""
        values = [self.attempt.released_values(node) for node in range(len(self.names))]
        shares = self._shares(answers, self.attempt.id, [self.attempt.ring], values)
        return build_report(self.study, shares, self.attempt, measured)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        """The report of a study that was released before: the same stored shares, nothing charged."""
        sizes = Sizes.of(self.study, answers)
        if self.study.noise_of_pairs:
            ring = sizes.ring(noise_tails(sizes))
            values = [
                len(answer.share) // (ring.bytes * len(self.study.kernels)) for answer in answers
            ]
            self._check_values(values, sizes.edges)
            shares = self._shares(answers, answers[0].attempt, [ring], values)
        else:
            shares = self._shares(answers, answers[0].attempt, RINGS, [1] * len(answers))
        return build_report(self.study, shares, sizes, measured)

    def _check_values(self, values: Sequence[int], edges: int) -> None:
        """Every pair is released by one owner or by two. Raises: RemoteProtocolError."""
        for name, count in zip(self.names, values, strict=True):
            if count > edges or not edges <= sum(values) <= 2 * edges:
                raise RemoteProtocolError(
                    f"{name} released {count} values of pairs and all nodes {sum(values)}, for {edges} pairs; give the "
                    f"study a new name to run it anew",
                    culprit=name,
                    step="release",
                )

    def _shares(
        self,
        answers: Sequence[m.Released],
        attempt: bytes,
        rings: Iterable[Ring],
        values: Sequence[int],
    ) -> list[bytes]:
        """values: how many numbers of each sum every node releases."""
        rings = list(rings)
        for name, answer, count in zip(self.names, answers, values, strict=True):
            sizes = [ring.bytes * len(self.study.kernels) * count for ring in rings]
            if len(answer.share) not in sizes:
                raise RemoteProtocolError(
                    f"{name} released {len(answer.share)} bytes, {' or '.join(map(str, sizes))} were due for "
                    f"{len(self.study.kernels)} sum(s)",
                    culprit=name,
                    step="release",
                )
        for name, answer in zip(self.names, answers, strict=True):
            other_ring = len(rings) > 1 and len(answer.share) != len(answers[0].share)
            if answer.attempt != attempt or other_ring:
                raise AlreadyReleased(
                    f"{name} released the study {self.study.name!r} in another attempt than the others, so the shares "
                    f"do not add up; give the study a new name to run it anew",
                    culprit=name,
                )
        return [answer.share for answer in answers]
