"""The dialogue of a whole study of every protocol: who says what to whom, in which order."""

from __future__ import annotations

import pytest

from tests.dialogues.house import NODES, House
from tests.dialogues.scripts import DIALOGUES, LARGE
from tests.dialogues.talk import Scene, check, study_of
from umpc.study.report import Report


def is_dialogue(house: House, kind: str, nodes: int, dialogue: str) -> None:
    """Check the dialogue of a study, what is on disk at its moments, and what is charged."""
    scene = Scene(house, study_of(kind, *NODES[:nodes]))
    assert isinstance(scene.run(), Report)
    check(house.network.said, dialogue, NODES[:nodes])
    for name in NODES[:nodes]:
        assert scene.study.hash in house.nodes[name].on_disk.account.charged


@pytest.mark.parametrize(("kind", "nodes"), DIALOGUES)
def test_a_study_is_this_dialogue(house, kind, nodes):
    is_dialogue(house, kind, nodes, DIALOGUES[kind, nodes])


@pytest.mark.parametrize(("kind", "nodes"), LARGE)
def test_a_study_of_many_records_is_this_dialogue(roomy, kind, nodes):
    is_dialogue(roomy, kind, nodes, LARGE[kind, nodes])
