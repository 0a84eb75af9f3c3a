"""Warnings that are due: the last 30 days of a certificate, and a list that is overdue."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from datetime import UTC, datetime, timedelta

import pytest

from umpc.testing import lying
from umpc.transport import identity as identity_module
from umpc.transport.authority import CA_DAYS, Authority
from umpc.transport.certificates import Revoked
from umpc.transport.identity import due, keep_watch, load_identity

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def identity(tmp_path):
    Authority.create(tmp_path / "authority", now=NOW).issue("a", "node", tmp_path / "a", now=NOW)
    return load_identity(tmp_path / "a", now=NOW)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (0, []),
        (60, []),
        (60.01, ["expires in 29 days, at 2026-05-30"]),
        (89.5, ["expires in 0 days"]),
        (90.01, ["expired, at 2026-05-30"]),
    ],
)
def test_a_certificate_is_due_in_its_last_30_days(identity, days, words):
    found = due(identity, NOW + timedelta(days=days))
    assert len(found) == len(words)
    for sentence, word in zip(found, words, strict=True):
        assert "the certificate of this process (node 'a')" in sentence and word in sentence
        assert "umpc enrol join --name a` and `umpc enrol finish`" in sentence


def test_the_authority_itself_is_due(identity):
    late = dataclasses.replace(identity, not_after=NOW + timedelta(days=2 * CA_DAYS), source=None)
    (sentence,) = due(late, NOW + timedelta(days=CA_DAYS - 10))
    assert "the authority's ca.pem expires in 10 days" in sentence


def test_a_list_is_due_after_its_date_and_the_own_revocation_at_once(identity):
    ours = identity.certificate.serial_number
    soon = NOW + timedelta(days=1)
    with_list = dataclasses.replace(identity, revoked=Revoked(4, NOW, soon, {}))
    assert due(with_list, soon) == []
    (sentence,) = due(with_list, soon + timedelta(seconds=1))
    assert "(number 4) is overdue since 2026-03-02" in sentence and "unknown" in sentence
    revoked = dataclasses.replace(identity, revoked=Revoked(4, NOW, soon, {ours: NOW}))
    (sentence,) = due(revoked, NOW)
    assert "is revoked, so all others refuse it" in sentence


def test_a_process_warns_at_its_start_and_then_once_a_day(identity, limit, caplog):
    """Each look is an hour after the one before: 50 hours have three warnings."""
    hours = iter(range(50))

    def now(_):
        return NOW + timedelta(days=70, hours=next(hours))

    limit(identity_module, LOOK_SECONDS=0)

    async def scenario():
        with pytest.raises(RuntimeError, match="StopIteration"):
            await keep_watch(identity)

    with lying("machine", clock=now), caplog.at_level(logging.WARNING, "umpc.identity"):
        asyncio.run(scenario())
    assert caplog.text.count("expires in") == 3


def test_a_process_notices_a_list_while_nobody_calls(identity, tmp_path, limit, caplog):
    authority = Authority.open(tmp_path / "authority")
    limit(identity_module, LOOK_SECONDS=0.01)

    async def scenario():
        watch = asyncio.create_task(keep_watch(identity))
        await asyncio.sleep(0.05)
        authority.revoke({5})
        (tmp_path / "a/crl.pem").write_bytes(authority.list_path.read_bytes())
        async with asyncio.timeout(10):
            while "counts from now on" not in caplog.text:
                await asyncio.sleep(0.01)
        watch.cancel()

    with caplog.at_level(logging.INFO, "umpc.identity"):
        asyncio.run(scenario())
