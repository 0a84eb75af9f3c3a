"""The nodes that a study loses, and whether it goes on without them.

    study = losses.study                  propose it
    losses.hear(answers)                  the nodes' answers to the proposal
    losses.is_settled = True              before a release is asked for: from now on nobody is
                                          left out any more
    node = losses.returning(error)        the node that can finish the study if it starts again
    study = losses.after(error)           the study to propose next, or the error again

A node that is lost before the release is left out of a new attempt over the survivors
(`umpc/study/attempt.py`). Nothing of the attempt that ended was opened. A node that said *ready*
before holds its share, and drops it. If it is not known that nobody has charged, nothing is dropped
and the lost node must come back.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from umpc.errors import (
    AlreadyReleased,
    PeerLost,
    PeerUnavailable,
    PreparationLost,
    StepTimeout,
    StudyError,
    UmpcError,
)
from umpc.protocols.base.coordinator import Proposed
from umpc.study import messages as m
from umpc.study.attempt import without
from umpc.study.document import Study
from umpc.study.parts import Participant

log = logging.getLogger("umpc.coordinator")
LOSSES = (PeerLost, PeerUnavailable, StepTimeout)
"""The failures by which a node counts as lost: it died, hangs, cannot be reached, or is too slow.
Another failure, such as a refusal, is an answer; the study ends with it."""


class Losses:
    """Args: study: with all its nodes."""

    def __init__(self, study: Study):
        self.study = study
        self.is_settled = False
        """Some node may have charged for this set of survivors, so it stays."""
        self.is_uncharged = False
        """All nodes that this run has asked said that they have charged nothing, and since then no
        release was asked for."""
        self.has_evaluated = False
        """This run has evaluated the attempt itself, so its result is no replay."""
        self._stored: tuple[str, ...] | None = None
        self._has_turned = False
        self._has_lost_preparation = False

    def hear(self, answers: Sequence[Proposed]) -> None:
        """Compare the answers' survivors with the proposal's.

        Raises: AlreadyReleased where nodes have charged for another set; `after` then turns to it.
        PeerLost where a node that is left out may have charged for an attempt that others hold.
        """
        missing = self.study.names_missing
        released = {answer.missing for answer in answers if isinstance(answer, m.Released)}
        self.is_settled = self.is_settled or bool(released)
        if released - {missing}:
            found = sorted(released - {missing})
            self._stored = found[0] if len(released) == 1 else None
            raise AlreadyReleased(
                f"the study {self.study.name!r} was released {_without(found[0])}, and is proposed "
                f"{_without(missing)}; its stored result is that of the nodes that released it",
                step="propose",
            )
        if not self.is_uncharged:
            self._check_holders(answers)

    def _check_holders(self, answers: Sequence[Proposed]) -> None:
        """Raises: PeerLost naming who may have charged for an attempt that others hold."""
        for node, answer in zip(self.study.nodes, answers, strict=True):
            if not isinstance(answer, m.Held):
                continue
            away = [name for name in self.study.names_missing if name not in answer.missing]
            if away:
                self.is_settled = True
                raise PeerLost(
                    f"{node.name} holds a finished attempt of the study {self.study.name!r} "
                    f"together with {', '.join(away)}, which may have charged for it and cannot "
                    f"be asked; start {', '.join(away)}, and run the study again",
                    culprit=away[0],
                    step="propose",
                )

    def returning(self, error: UmpcError) -> Participant | None:
        """The node that was lost after it was ready, so that it holds its share on disk.

        A node that is too slow is not lost by a restart, so waiting for one is of no use.
        """
        if not self.is_settled or not isinstance(error, PeerLost | PeerUnavailable):
            return None
        return next((node for node in self.study.nodes if node.name == error.culprit), None)

    def after(self, error: UmpcError) -> Study:
        """The study to propose after a failure.

        Raises: the error, where the study ends with it.
        """
        if self._stored is not None and not self._has_turned:
            self._has_turned = True
            return self._turn_to(self._stored, error)
        if isinstance(error, PreparationLost) and not self._has_lost_preparation:
            # All nodes have dropped what they had, so this is a run like any other, no trouble.
            self._has_lost_preparation = True
            log.info("%s", error.message)
            return self.study
        names = {node.name for node in self.study.nodes}
        is_loss = isinstance(error, LOSSES) and error.culprit in names
        if self.is_settled or not self.study.most_missing or not is_loss:
            raise error
        survivors = self._turn_to((*self.study.names_missing, error.culprit or ""), error)
        log.warning(
            "study %r goes on without %s, which was lost in step %s: %s",
            survivors.name,
            error.culprit,
            error.step,
            type(error).__name__,
        )
        return survivors

    def _turn_to(self, missing: Sequence[str], error: UmpcError) -> Study:
        """Raises: the error, where the study does not end without these nodes."""
        try:
            self.study = without(self.study, missing)
        except StudyError as refusal:
            error.message = f"{error.message.rstrip('.')}. It does not go on: {refusal.message}"
            error.args = (error.message,)
            raise error from refusal
        return self.study


def _without(missing: Sequence[str]) -> str:
    return f"without {', '.join(missing)}" if missing else "with all its nodes"
