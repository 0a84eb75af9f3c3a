"""The example consortium of containers, as far as it can be checked without an engine."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_example_behind_a_hub_is_the_example_and_a_hub():
    plain, hub = (
        yaml.safe_load((ROOT / name).read_text())
        for name in ("docker-compose.yml", "docker-compose.hub.yml")
    )
    members = [hub["x-member"], *hub["services"].values()]
    assert {each["environment"].pop("UMPC_HUB", None) for each in members} == {"yes", None}
    assert hub["services"].pop("hub")["command"] == "hub"
    hub["services"]["coordinator"]["depends_on"].remove("hub")
    assert hub == plain
