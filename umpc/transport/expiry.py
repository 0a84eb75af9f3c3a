"""Warnings about the dates of an identity: certificates that end, and an overdue list."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from umpc.transport.certificates import NEW_AUTHORITY, clock, parse_certificate, renewal
from umpc.transport.identity import Identity

log = logging.getLogger("umpc.identity")

WARN_DAYS = 30
"""Days before the end of a certificate from which on every process warns."""
LOOK_SECONDS = 60
WARN_EVERY = timedelta(days=1)


def due(identity: Identity, now: datetime | None = None) -> list[str]:
    """Return a sentence for each thing that somebody must do, and none if all is well."""
    now = now or clock()
    found = []
    what = f"the certificate of this process ({identity.role} {identity.name!r})"
    renew = f"{renewal(identity.name, identity.role)}; no restart is needed"
    found += _ending(what, identity.not_after, renew, now)
    authority = parse_certificate(identity.ca_pem, "ca.pem")
    found += _ending("the authority's ca.pem", authority.not_valid_after_utc, NEW_AUTHORITY, now)
    revoked = identity.revoked
    if revoked is not None and identity.certificate.serial_number in revoked:
        found.append(f"{what} is revoked, so all others refuse it: ask the authority")
    if revoked is not None and now > revoked.next_update:
        found.append(
            f"the list of revoked certificates (number {revoked.number}) is overdue since "
            f"{revoked.next_update:%F %R} UTC, and what was revoked since is unknown: "
            "get a new crl.pem from the authority"
        )
    return found


def _ending(what: str, until: datetime, remedy: str, now: datetime) -> list[str]:
    if now > until:
        return [f"{what} expired, at {until:%F %R} UTC: {remedy}"]
    days = (until - now).days
    if days < WARN_DAYS:
        return [f"{what} expires in {days} days, at {until:%F %R} UTC: {remedy}"]
    return []


async def keep_watch(identity: Identity) -> None:
    """Read changed files within a minute, and warn of what is due now and once a day. Endless."""
    warned: datetime | None = None
    while True:
        now = clock()
        latest = identity.latest()
        if warned is None or now - warned >= WARN_EVERY:
            warned = now
            for sentence in due(latest, now):
                log.warning("%s", sentence)
        await asyncio.sleep(LOOK_SECONDS)
