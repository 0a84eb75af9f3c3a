"""`umpc study watch`: how far a run is, and who is connected, from another process.

`umpc study run --wait`: ask again until every site has accepted the study.

Each question is a proposal, which a site that waits refuses before it reads its table. A site that
has accepted already reserves the study's ε for a moment. The questions become rarer: 15 s after the
first, and up to 5 minutes later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.coordinator.run_file import RunState, has_died, read_run
from umpc.errors import ApprovalPending, UmpcError

if TYPE_CHECKING:
    from umpc.api.study import ProposedStudy
    from umpc.proto.v1 import umpc_pb2 as pb
    from umpc.study.document import Study
    from umpc.study.report import Report
    from umpc.transport.identity import Identity

PAUSE_SECONDS = 2.0
HUB_SECONDS = 5.0
SHOWN = 5
"""Nodes that the line on a step names."""


def watch_run(file: Path, study: Study, identity: Identity, *, once: bool) -> None:
    """Print the state of a study's run, once or until it ends."""
    while True:
        run = read_run(file)
        if run is None:
            click.echo(f"no run of study {study.name!r} goes on")
        elif has_died(run):
            click.echo(f"the process of study {run.study!r} ended without a word")
        else:
            click.echo(step_line(run, time.time()))
            for line in node_lines(run, time.time()):
                click.echo(line)
        for line in asyncio.run(hub_lines(study, identity)):
            click.echo(line)
        if once or run is None or has_died(run):
            return
        time.sleep(PAUSE_SECONDS)
        click.echo()


def step_line(run: RunState, now: float) -> str:
    """Return one line on a run: its step, who has answered, and who is waited for."""
    states = run.nodes.values()
    step = max(states, key=lambda state: state.since).step
    late = [
        name for name, state in run.nodes.items() if state.step != step or state.done < state.total
    ]
    since = max((state.since for state in states if state.step == step), default=run.begun)
    shown = ", ".join(late[:SHOWN]) + (" and others" if len(late) > SHOWN else "")
    waits = f", waiting for {shown}" if late else ""
    return (
        f"study {run.study!r} runs for {in_clock(now - run.begun)}: step {step} for "
        f"{in_clock(now - since)}, {len(states) - len(late)} of {len(states)} nodes have done it"
        f"{waits}"
    )


def node_lines(run: RunState, now: float) -> Iterator[str]:
    """Yield a line for each node: since when it is connected, and how far it is."""
    for name, state in run.nodes.items():
        if state.connected is None:
            yield f"{name:<24} not connected"
            continue
        far = "done" if state.done >= state.total else f"{state.done} of {state.total}"
        if state.total == 1 and not state.done:
            far = "at work"
        yield (
            f"{name:<24} connected for {in_clock(now - state.connected)}, {state.step} "
            f"{far} for {in_clock(now - state.since)}"
        )


async def hub_lines(study: Study, identity: Identity) -> list[str]:
    """Return a line for each process of the study at each of its hubs."""
    from umpc.transport.addresses import is_behind_hub, parse_hub
    from umpc.transport.hub.connection import ask_status

    dealer = [("dealer", study.dealer)] if study.dealer else []
    asked = [("node", each) for each in study.nodes] + dealer
    asked += [("shuffler", each) for each in study.shufflers]
    lines = []
    for address in dict.fromkeys(each.address for _, each in asked if is_behind_hub(each.address)):
        hub = parse_hub(address)
        members = [(role, each.name) for role, each in asked if each.address == address]
        try:
            reply = await ask_status(identity, hub, HUB_SECONDS)
        except UmpcError as error:
            lines.append(f"hub {hub.name}: {error.message}")
        else:
            lines += _seat_lines(hub.name, members, reply)
    return lines


def _seat_lines(
    hub: str, members: Sequence[tuple[str, str]], reply: pb.HubStatusReply
) -> Iterator[str]:
    seats = {(seat.role, seat.name): seat for seat in reply.seats if seat.listens}
    for role, name in members:
        seat = seats.get((role, name))
        if seat is None:
            yield f"{name:<24} {role}, not connected to hub {hub}"
        else:
            yield (
                f"{name:<24} {role}, at hub {hub} for {in_clock(seat.seconds)}, heard "
                f"{in_clock(seat.silent)} ago, {seat.waiting:,} bytes wait for it"
            )


def in_clock(seconds: float) -> str:
    """Return a length of time as hours, minutes and seconds."""
    hours, rest = divmod(max(0, int(seconds)), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"


# --- waiting for approval -------------------------------------------------------------------------


FIRST_PAUSE = 15.0
LONGEST_PAUSE = 300.0
GROWTH = 1.5
HOUR = 3600


def run_when_accepted(
    study: ProposedStudy,
    run: Callable[[], Report],
    hours: float,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Report:
    """Run a study as soon as every site has accepted it. Say who has yet to decide.

    Raises: ApprovalPending after so many hours; PolicyRefused if a site rejects it; as `run`.
    """
    until = now() + hours * HOUR
    pause = FIRST_PAUSE
    told: tuple[str, ...] | None = None
    names = [node.name for node in study.document.nodes]
    while True:
        try:
            return run()
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
