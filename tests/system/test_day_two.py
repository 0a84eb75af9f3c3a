"""docs/day_two.md, word by word, in the folder where docs/trial.md ends."""

from __future__ import annotations

import re

import pytest

from tests.support.document_blocks import ROOT, Reader

TRIAL, PAGE = ((ROOT / "docs" / name).read_text("utf-8") for name in ("trial.md", "day_two.md"))
NAMES = ("move", "copy", "back", "withdraw", "stored", "leave")
NAMED = re.compile(r"<!-- run: (\w+) -->")


@pytest.mark.timeout(600)
def test_a_site_moves_withdraws_and_leaves_by_the_page_alone(tmp_path):
    assert tuple(NAMED.findall(PAGE)) == NAMES
    Reader(tmp_path).reads(f"{TRIAL}\n{NAMED.sub('<!-- run -->', PAGE)}")
