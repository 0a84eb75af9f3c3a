"""A coordinator hands out keys, counts or names of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from umpc.crypto.zero_shares import KeyAgreement
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.study import messages as m
from umpc.study.parts import FieldText

LINE = "a coordinator hands out X25519 keys of its own"
MEAN = {
    "statistic": "mean",
    "columns": ["age"],
    "fields": (FieldText("age", "0", "127", whole=True),),
    "noise": "distributed",
    "epsilon": "1000",
}


def exchanged(**changes):
    """A tale in which every node hears another entry of each other node."""

    def tale(node: str, message):
        if not isinstance(message, m.Agree):
            return message
        members = [
            each if each.name == node else replace(each, **{k: v(each) for k, v in changes.items()})
            for each in message.members
        ]
        return replace(message, members=tuple(members))

    return tale


CHANGES = {
    "key": {"public_key": lambda each: KeyAgreement(bytes(32)).public_key},
    "count": {"records": lambda each: each.records + 1},
}


@pytest.mark.attack(LINE, "both", "noticed: the coordinator is named, nothing is charged")
@pytest.mark.lies("exchanged")
@pytest.mark.parametrize("what", CHANGES)
def test_an_exchanged_entry_names_the_coordinator(liars, what):
    name = f"exchanged-{what}"
    ended = liars.attempt(exchanged(**CHANGES[what]), name=name, **MEAN)
    assert isinstance(ended, RemoteProtocolError | CertificateError), ended
    assert ended.culprit == "coordinator", ended
    assert not any(liars.charged(node, name) for node in liars.names)
