"""The address of a process behind a hub, as a study names it: `hub:NAME@HOST:PORT`.

NAME is the name in the hub's certificate, HOST:PORT the address at which the hub listens. Every
member of the hub has this one address, and a process is found there by its own name and role.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from umpc.errors import ConfigError
from umpc.transport.certificates import is_name
from umpc.transport.diagnose import split_address

PREFIX = "hub:"
FORM = re.compile(r"(hub:)?(?P<name>[^@]*)@(?P<address>.*)")


@dataclass(frozen=True)
class HubAddress:
    """A hub. name: in its certificate. address: its "host:port"."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}@{self.address}"


def is_behind_hub(address: str) -> bool:
    """Return whether a process with this address is reached through a hub."""
    return address.startswith(PREFIX)


@lru_cache(maxsize=256)  # all members of a hub have its address
def parse_hub(text: str) -> HubAddress:
    """Read `hub:NAME@HOST:PORT` or `NAME@HOST:PORT`. Raises: ConfigError."""
    found = FORM.fullmatch(text)
    if found is None or not is_name(found["name"]):
        raise ConfigError(
            f"the hub {text!r} is wrong: expected NAME@HOST:PORT, as in relay@hub.example.org:7443"
        )
    split_address(found["address"])
    return HubAddress(found["name"], found["address"])
