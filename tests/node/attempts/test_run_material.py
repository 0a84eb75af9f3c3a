"""umpc.node.attempts.run_material: the dealer is dialled early, and asked with signed facts."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from umpc.errors import PeerUnavailable
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.material import DealerCall, DealerLine


@pytest.mark.parametrize(("asks_early", "has_dealer"), [(True, True), (True, False), (False, True)])
def test_the_dealer_is_dialled_before_e_is_known_only_where_the_edges_surely_need_it(
    asks_early, has_dealer, monkeypatch
):
    """It is dialled while the members agree, and asked with facts of which none follows from E."""
    said: list[str] = []

    async def dial(line: DealerLine) -> None:
        said.append(f"dial {line.stream.peer}")

    async def ask(call: DealerCall) -> None:
        said.append("ask")

    monkeypatch.setattr(DealerCall, "ask", ask)
    runner, side = dealt_run(dial, asks_early=asks_early, has_dealer=has_dealer)

    async def scenario() -> None:
        runner.material.dial(runner.site, side)
        await asyncio.sleep(0)
        assert said == ["dial dealer"] * (asks_early and has_dealer)
        await runner.material.ask_dealer(side, ())
        runner.close()

    asyncio.run(scenario())
    assert said == ["dial dealer", "ask"] * (asks_early and has_dealer)


def test_a_dealer_that_cannot_be_reached_is_told_of_when_it_is_asked():
    async def dial(line: DealerLine) -> None:
        raise PeerUnavailable("no dealer", culprit="dealer")

    runner, side = dealt_run(dial)

    async def scenario() -> None:
        runner.material.dial(runner.site, side)
        await asyncio.sleep(0)
        with pytest.raises(PeerUnavailable, match="no dealer"):
            await runner.material.ask_dealer(side, ())
        runner.close()

    asyncio.run(scenario())


def test_a_run_that_ends_before_the_dealer_is_asked_ends_the_dialling():
    ended: list[str] = []

    async def dial(line: DealerLine) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(line.stream.peer)

    runner, side = dealt_run(dial)

    async def scenario() -> None:
        runner.material.dial(runner.site, side)
        await asyncio.sleep(0)
        runner.close()
        await asyncio.sleep(0)
        assert ended == ["dealer"]

    asyncio.run(scenario())


def dealt_run(
    dial: Any, *, asks_early: bool = True, has_dealer: bool = True
) -> tuple[AttemptRunner, Any]:
    """A run whose site dials the dealer so, and its node's side."""
    dealer = SimpleNamespace(name="dealer", address="127.0.0.1:1") if has_dealer else None
    study = SimpleNamespace(dealer=dealer, seconds_per_step=20, encode=lambda: b"study")
    mesh = SimpleNamespace(asks_early=asks_early, members=())
    site: Any = SimpleNamespace(dial_dealer=dial)
    return AttemptRunner(site, tell=site), SimpleNamespace(study=study, mesh=mesh, signatures=())
