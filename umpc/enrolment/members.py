"""The members of a consortium, as its authority tells them: name, role and address of each.

An address is the member's own word. It decides nothing: TLS proves the name and the role of
whoever answers there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from umpc.enrolment.register import Register
from umpc.errors import CertificateError, ConfigError
from umpc.transport.authority import Issued
from umpc.transport.certificates import check_name, clock, names_of
from umpc.transport.files import read_file
from umpc.transport.identity import load_revoked

MOST_MEMBERS = 10_000
ADDRESS = re.compile(r"[!#-\[\]-~]{0,255}")
"""Printable ASCII without the two characters that end or escape a text in TOML."""


@dataclass(frozen=True)
class ConsortiumMember:
    """A process with a certificate that counts. address: HOST:PORT, or "" if it gave none."""

    name: str
    role: str
    address: str = ""


def members_of(folder: Path, now: datetime | None = None) -> list[ConsortiumMember]:
    """Return the members of an authority in the order of role and name. Needs no key of it.

    Raises: CertificateError if a file of the authority is damaged.
    """
    at = now or clock()
    ca_pem = read_file(folder / "ca.pem", "restore the authority's folder from a backup")
    revoked = load_revoked(folder / "crl.pem", ca_pem)
    valid = {
        names_of(cert)
        for cert in Issued(folder / "issued").all()
        if cert.not_valid_after_utc > at
        and not (revoked is not None and cert.serial_number in revoked)
    }
    addresses = {
        (entry.name, entry.role): entry.member_address
        for entry in Register(folder / "enrolments").all()
    }
    ordered = sorted(valid, key=lambda names: (names[1], names[0]))
    return [ConsortiumMember(*names, addresses.get(names, "")) for names in ordered]


def to_plain(members: Iterable[ConsortiumMember]) -> list[dict[str, str]]:
    """Return members as JSON has them."""
    return [asdict(each) for each in members]


def parse_members(found: object) -> list[ConsortiumMember]:
    """Return the members that an authority sent. Raises: CertificateError."""
    try:
        if not isinstance(found, list) or len(found) > MOST_MEMBERS:
            raise ValueError
        return [_parse(each) for each in found]
    except (ValueError, TypeError, AttributeError, ConfigError):
        raise CertificateError(
            "the authority's list of members is malformed: ask the authority for its version of "
            "umpc"
        ) from None


def _parse(found: Mapping[str, object]) -> ConsortiumMember:
    member = ConsortiumMember(**{key: str(value) for key, value in found.items()})
    check_name(member.name, member.role)
    if not ADDRESS.fullmatch(member.address):
        raise ValueError
    return member


def to_toml(members: Iterable[ConsortiumMember], at: datetime) -> str:
    """Return the members as a study file names them. The rest is a comment."""
    return "\n".join([f"# Members of the consortium, told at {at:%F %T} UTC.", *_lines(members)])


def _lines(members: Iterable[ConsortiumMember]) -> Iterator[str]:
    tables = {"node": "[[nodes]]", "dealer": "[dealer]", "shuffler": "[[shufflers]]"}
    for member in members:
        table = tables.get(member.role)
        if table is None or not ADDRESS.fullmatch(member.address) or not member.address:
            where = member.address if ADDRESS.fullmatch(member.address) else "an unusable address"
            yield f"# {member.role} {member.name!r}, {where or 'without an address'}"
            continue
        if member.role == "dealer":
            del tables["dealer"]  # a study has at most one
        yield f'{table}\nname = "{member.name}"\naddress = "{member.address}"'
    yield ""
