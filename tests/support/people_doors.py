"""A dealer and two aggregators in memory, for the device of a person."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from umpc.errors import MessageRefused, PeerLost
from umpc.people import messages
from umpc.people.device import DoorEntry, PeopleInvitation
from umpc.people.places import new_tokens
from umpc.protocols.people.terms import messages_of
from umpc.study.document import Study
from umpc.transport.authority import Authority
from umpc.transport.identity import Identity, credentials_of, load_identity

PLACES = 600
TOKENS = list(new_tokens(PLACES, os.urandom))


@dataclass
class Doors:
    """Both kinds of doors, by the functions that the real ones call. This one is the dealer's."""

    study: Study
    identities: list[Identity]
    secrets_of: dict[int, bytes] = field(default_factory=dict)
    devices: dict[int, bytes] = field(default_factory=dict)
    boxes: list[dict[int, list[bytes]]] = field(default_factory=lambda: [{}, {}])
    opened: list[dict[int, messages.Opened]] = field(default_factory=lambda: [{}, {}])
    is_down: set[int] = field(default_factory=set)
    """The aggregators whose answers are lost on their way."""

    def __post_init__(self):
        self.survey = messages_of(self.study)
        self.box_secrets = [os.urandom(32) for _ in range(2)]

    async def secrets(self, study, requests):
        found = []
        for place, device, signature in requests:
            former = self.devices.get(place, b"")
            try:
                messages.check_secret_request(
                    self.survey, place, TOKENS[place][1], device, signature
                )
                messages.check_device(place, device, former)
            except MessageRefused as error:
                found.append(error)
                continue
            self.devices[place] = device
            secret = self.secrets_of.setdefault(place, os.urandom(32))
            found.append(messages.seal_secret(self.survey, place, device, secret, os.urandom))
        return found

    def aggregator(self, side):
        return Aggregator(self, side)

    @property
    def all(self):
        return self, [self.aggregator(0), self.aggregator(1)]

    def invitation(self, **changes):
        shown = []
        for side, identity in enumerate(self.identities):
            key = X25519PrivateKey.from_private_bytes(self.box_secrets[side])
            public = key.public_key().public_bytes_raw()
            statement = messages.opened_statement(self.survey, side, public)
            own = credentials_of(identity)
            shown.append(
                DoorEntry(own.name, "here:1", public, own.certificate, own.sign(statement))
            )
        facts = {
            "study": self.study.encode().decode(),
            "ca": self.identities[0].ca_pem.decode(),
            "dealer": DoorEntry("dealer", "here:1"),
            "aggregators": tuple(shown),
        }
        return PeopleInvitation(**(facts | changes))

    def cell(self, place):
        """The cell that both aggregators and the dealer would find together."""
        first, second = (each[place] for each in self.opened)
        assert first == second
        r = messages.offset(self.survey, place, self.secrets_of[place])
        return (first.number + r) % self.survey.cells


@dataclass
class Aggregator:
    doors: Doors
    side: int

    async def submit(self, study, boxes):
        doors, side = self.doors, self.side
        found = []
        own = credentials_of(doors.identities[side])
        for place, box in boxes:
            doors.boxes[side].setdefault(place, []).append(box)
            opened = messages.open_box(
                doors.survey, side, doors.box_secrets[side], place, TOKENS[place][1], box
            )
            if place in doors.opened[side]:
                messages.check_again(doors.opened[side][place].receipt, opened)
            doors.opened[side][place] = opened
            told = opened.receipt
            signed = messages.receipt_statement(doors.survey, side, place, told)
            found.append(told + own.sign(signed))
        if side in doors.is_down:
            raise PeerLost("the line was cut")
        return found


def aggregators(folder: Path) -> list[Identity]:
    """The identities of two aggregators under one authority, whose folder is `ca`."""
    authority = Authority.create(folder / "ca")
    found = []
    for name in ("node-0", "node-1"):
        authority.issue(name, "node", folder / name)
        found.append(load_identity(folder / name))
    return found
