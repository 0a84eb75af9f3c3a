"""The list of revoked certificates, as a value: which serial numbers are on it, and its dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from umpc.errors import CertificateError


@dataclass(frozen=True)
class Revoked:
    """The content of one signed list of the authority.

    Args:
        number: grows with each list. A list with a smaller number is an older one.
        made: when the authority signed it.
        next_update: the time until which the authority promises a newer one.
        serials: when each certificate was revoked, by its serial number.
    """

    number: int
    made: datetime
    next_update: datetime
    serials: Mapping[int, datetime] = field(default_factory=lambda: MappingProxyType({}))

    def __contains__(self, serial: int) -> bool:
        return serial in self.serials

    def check(self, serial: int, name: str, role: str) -> None:
        """Check that a certificate is not on the list. Raises: CertificateError, with culprit."""
        since = self.serials.get(serial)
        if since is not None:
            raise CertificateError(
                f"the certificate of {role} {name!r} was revoked, at {since:%F %R} UTC "
                f"(serial number {serial:x}): leave {name!r} out, or get it a new certificate "
                "from the authority",
                culprit=name,
            )
