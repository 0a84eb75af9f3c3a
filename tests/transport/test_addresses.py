"""umpc/transport/addresses.py: the address of a process behind a hub."""

from __future__ import annotations

import pytest

from umpc.errors import ConfigError
from umpc.transport.addresses import HubAddress, is_behind_hub, parse_hub


def test_an_address_is_read_with_and_without_its_prefix():
    expected = HubAddress("relay", "hub.example.org:7443")
    assert parse_hub("relay@hub.example.org:7443") == expected
    assert parse_hub(str(expected)) == expected and is_behind_hub(str(expected))
    assert parse_hub("hub:relay@[::1]:7443").address == "[::1]:7443"
    assert not is_behind_hub("hub.example.org:7443") and not is_behind_hub("hub")


def test_a_wrong_address_is_refused_with_the_form_that_was_expected():
    for wrong in ("relay", "@host:1", "re lay@host:1", "relay@host", "relay@::1:7", "hub:host:1"):
        with pytest.raises(ConfigError, match="expected"):
            parse_hub(wrong)
