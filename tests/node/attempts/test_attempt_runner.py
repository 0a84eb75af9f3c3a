"""umpc.node.attempts.attempt_runner: nothing uses data before all signatures are checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from umpc.errors import RemoteProtocolError
from umpc.node.attempts.attempt_runner import AttemptRunner


@pytest.mark.parametrize("good", [True, False])
def test_records_are_used_only_after_everybodys_signature_of_the_attempt(good):
    done: list[str] = []

    def check_prepared(signatures: tuple[bytes, ...]) -> None:
        done.append("checked")
        if signatures != (b"good",):
            raise RemoteProtocolError("not signed", culprit="coordinator", step="evaluate")

    def own_steps() -> Iterator[None]:
        done.append("used")
        yield

    async def scenario() -> None:
        runner = AttemptRunner(site, tell=site)
        runner._side = side
        try:
            await runner.evaluate((b"good",) if good else (b"bad",))
        finally:
            runner.close()

    site: Any = None
    study = SimpleNamespace(seconds_per_step=60)
    side: Any = SimpleNamespace(
        check_prepared=check_prepared, own_steps=own_steps, mesh=None, study=study
    )
    if good:
        asyncio.run(scenario())
    else:
        with pytest.raises(RemoteProtocolError):
            asyncio.run(scenario())
    assert done == (["checked", "used"] if good else ["checked"])
