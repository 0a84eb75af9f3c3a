"""`umpc study run --wait`: ask again until every site has accepted the study.

Each question is a proposal, which a site that waits refuses before it reads its table. A site that
has accepted already reserves the study's ε for a moment. The questions become rarer: 15 s after the
first, and up to 5 minutes later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from umpc.errors import ApprovalPending

if TYPE_CHECKING:
    from umpc.api.result import Result
    from umpc.api.study import ProposedStudy

FIRST_PAUSE = 15.0
LONGEST_PAUSE = 300.0
GROWTH = 1.5
HOUR = 3600


def run_when_accepted(
    study: ProposedStudy,
    hours: float,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
    *,
    progress: bool = True,
) -> Result:
    """Run a study as soon as every site has accepted it. Say who has yet to decide.

    Args: progress: whether the steps of the run are shown.

    Raises: ApprovalPending after so many hours; PolicyRefused if a site rejects it; as `study.run`.
    """
    until = now() + hours * HOUR
    pause = FIRST_PAUSE
    told: tuple[str, ...] | None = None
    names = [node.name for node in study.document.nodes]
    while True:
        try:
            return study.run(progress=progress)
        except ApprovalPending as error:
            waiting = error.waiting or ((error.culprit,) if error.culprit else ())
            if now() + pause > until:
                raise
        if waiting != told:
            _tell(study, names, waiting)
            told = waiting
        sleep(pause)
        pause = min(GROWTH * pause, LONGEST_PAUSE)


def _tell(study: ProposedStudy, names: list[str], waiting: tuple[str, ...]) -> None:
    """Say on standard error who has yet to decide, and who need not any more."""
    ready = [name for name in names if name not in waiting]
    digits = study.document.hash.hex()[:16]
    click.echo(
        f"waiting for approval by {', '.join(waiting)}; "
        f"ready: {', '.join(ready) or 'nobody yet'}; the study's hash is {digits}",
        err=True,
    )
