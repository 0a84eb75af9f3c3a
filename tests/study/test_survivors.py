"""umpc.study.attempt: the study over the nodes that are left, and its rules."""

from __future__ import annotations

from itertools import combinations

import msgspec
import pytest

from tests.support.studies import STUDY, make_study
from umpc.errors import StudyError
from umpc.protocols.registry import checked, decode_study
from umpc.study.attempt import describe_losses, fewest_survivors, without
from umpc.study.document import Study
from umpc.study.parts import Participant

NAMES = [f"node-{number}" for number in range(5)]


def tolerant(nodes: int = 5, **changes) -> Study:
    return make_study(nodes=nodes, **{"may_miss": 2, **changes})


def test_every_set_of_survivors_is_a_study_of_its_own_that_is_charged_as_the_whole():
    whole = checked(tolerant(required=("node-1",)))
    hashes = {whole.hash}
    sets = [set(lost) for count in (1, 2) for lost in combinations(NAMES, count)]
    for lost in [each for each in sets if "node-1" not in each]:
        study = without(whole, lost)
        assert decode_study(study.encode()) == study == without(study, lost)
        assert [node.name for node in study.nodes] == [n for n in NAMES if n not in lost]
        assert set(study.names_missing) == lost and study.whole == whole
        assert study.whole.hash == whole.hash
        alone = msgspec.structs.replace(study, missing=msgspec.UNSET)
        assert study.hash != alone.hash, "a study that never had other nodes is another one"
        assert study.honest >= 1 and study.max_colluding == min(
            whole.max_colluding, len(study.nodes) - 1
        )
        hashes.add(study.hash)
    assert len(hashes) == 1 + 4 + 6, "each set has its own attempts and signatures"
    assert without(without(whole, {"node-0"}), ()) == whole


def test_each_survivor_keeps_its_data_set():
    whole = checked(tolerant(datasets=("heart", "", "cardio", "", "")))
    for lost, left in (
        (["node-0"], ("", "cardio", "", "")),
        (["node-1", "node-2"], ("heart", "", "")),
        (["node-0", "node-2"], msgspec.UNSET),
    ):
        study = checked(without(whole, lost))
        assert study.datasets == left and study.whole == whole
        assert decode_study(study.encode()) == study


def test_as_many_may_collude_as_before_or_all_others():
    for colluding, left in ((1, 1), (2, 2), (3, 2), (4, 2)):
        study = without(tolerant(max_colluding=colluding), ("node-0", "node-4"))
        assert (study.max_colluding, len(study.nodes)) == (left, 3)


def test_nodes_that_move_are_the_same_survivors():
    study = without(tolerant(), ["node-2"])
    away = tuple(Participant(node.name, "10.0.0.9:1") for node in study.whole.nodes)
    moved = without(study.whole.replaced(nodes=away), ["node-2"])
    assert (moved.hash, moved.whole.hash) == (study.hash, study.whole.hash)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"may_miss": 0}, "from 1 to 3"),
        ({"may_miss": 4}, "at least 2 must be left"),
        ({"may_miss": -1}, "from 1 to 3"),
        ({"nodes": 2, "may_miss": 1}, "from 1 to 0"),
        ({"required": ("node-9",)}, "required names nodes of the study"),
        ({"required": ("node-1", "node-1")}, "each once"),
        ({"required": ("node-0", "node-1", "node-2", "node-3")}, "too few are left"),
        ({"may_miss": msgspec.UNSET, "required": ("node-0",)}, "required goes with may_miss"),
    ],
)
def test_rules_of_may_miss_and_required(changes, words):
    with pytest.raises(StudyError, match=words):
        checked(tolerant(**changes))


def test_the_protocols_rules_hold_for_the_fewest_survivors():
    facts = {"kernels": ["a.x"], "degree": 1, "protocol": "gopa", "delta": "1e-6", "edges": "all"}
    facts |= {"dealer": None, "neighbours": 3, "max_colluding": 1, "epsilon": "1"}
    checked(make_study(nodes=5, **facts))
    with pytest.raises(StudyError, match=r"with 3 nodes, as may_miss allows: .*neighbours"):
        checked(make_study(nodes=5, may_miss=2, **facts))


def test_more_losses_or_a_required_node_end_the_study():
    whole = tolerant(required=("node-1",))
    for lost, words in (
        (("node-0", "node-2", "node-3"), "without at most 2 of its nodes"),
        (("node-1",), r"needs node-1 \(required\)"),
        (("node-7",), "no node of it"),
    ):
        with pytest.raises(StudyError, match=words):
            without(whole, lost)
    with pytest.raises(StudyError, match="without at most 0"):
        without(STUDY, (STUDY.nodes[0].name,))


def test_no_other_document_passes_for_survivors():
    """A coordinator may write any document; a node takes one that follows from a whole study."""
    study = without(tolerant(required=("node-1",), max_colluding=4), ("node-0", "node-3"))
    missing = study.missing
    isolated = {"nodes": study.nodes[:1]}
    nodes = (*missing.nodes, Participant("x", ""))
    third = msgspec.structs.replace(missing, places=(0, 1, 2), nodes=nodes)
    for changes in (
        isolated,
        {"missing": third},
        {"missing": msgspec.structs.replace(missing, places=(3, 0))},
        {"missing": msgspec.structs.replace(missing, places=(-5, 3))},
        {"missing": msgspec.structs.replace(missing, places=(0,))},
        {"missing": msgspec.structs.replace(missing, places=(0, 1 << 70))},
        {"missing": msgspec.structs.replace(missing, nodes=study.nodes[:2])},
        {"missing": msgspec.structs.replace(missing, places=(), nodes=())},
        {"missing": msgspec.structs.replace(missing, max_colluding=9)},
        {"max_colluding": study.max_colluding - 1},
        {"required": ("node-0",)},
        {"may_miss": 1},
        {"may_miss": msgspec.UNSET},
    ):
        with pytest.raises(StudyError):
            found = decode_study(msgspec.structs.replace(study, **changes).encode())
            pytest.fail(f"{changes} passed: {found}")


def test_what_is_said_before_a_run():
    whole = tolerant(required=("node-4",))
    assert describe_losses(STUDY) == ""
    assert "up to 2 of 5 nodes" in describe_losses(whole) and "not node-4" in describe_losses(whole)
    assert fewest_survivors(whole).names_missing == ("node-2", "node-3")
    assert fewest_survivors(without(whole, ["node-0"])).names_missing == ("node-2", "node-3")
    assert fewest_survivors(STUDY) is None is fewest_survivors(without(whole, NAMES[:2]))
