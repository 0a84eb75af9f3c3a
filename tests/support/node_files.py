"""Configuration files of a node, and their refusals. The fixture `site` is in tests/node."""

from __future__ import annotations

from pathlib import Path

import pytest

from umpc.errors import ConfigError
from umpc.node.config import NodeConfig, load_node_config

HEAD = 'name = "a"\nidentity = "id"\n'
DATA = '[data]\npath = "bank.csv"\n'
BUDGET = "[budget]\nepsilon = 5\n"


def load(site: Path, text: str) -> NodeConfig:
    (site / "node.toml").write_text(text, encoding="utf-8")
    return load_node_config(site / "node.toml")


def refused(site: Path, text: str, *parts: str) -> None:
    """The refusal names the file and each part, and says what to do."""
    with pytest.raises(ConfigError) as caught:
        load(site, text)
    message = caught.value.message
    assert message.startswith(f"{site / 'node.toml'}: ") and (
        "Correct" in message or "Add it" in message
    )
    assert [part for part in parts if part not in message] == [], message
