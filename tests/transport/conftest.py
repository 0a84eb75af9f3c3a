"""One authority and its sites for every test of the transport."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from umpc.transport.authority import Authority
from umpc.transport.identity import load_identity

sys.path.insert(0, str(Path(__file__).parent))  # for transport_echo, which is also a program

LONG_AGO = datetime(2020, 5, 1, tzinfo=UTC)


@pytest.fixture
def authority(tmp_path):
    return Authority.create(tmp_path / "authority", now=LONG_AGO)


@pytest.fixture
def other_authority(tmp_path):
    return Authority.create(tmp_path / "other", now=LONG_AGO)


@pytest.fixture
def site(authority, tmp_path):
    """site(name, role, signer=…, now=…): the identity of a site; its folder is tmp_path/name."""

    def make(name="a", role="node", signer=authority, now=None):
        signer.issue(name, role, tmp_path / name, now=now)
        return load_identity(tmp_path / name, now=now)

    return make


@pytest.fixture
def identity(site):
    return site("north", "node")
