"""Studies that begin with what the last one left, and studies with checked transfers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.protocols.u_mpc.test_garbled import check as check_sums
from tests.protocols.u_mpc.test_garbled_node import EVALUATOR, GARBLER, GarbledRun
from tests.protocols.u_mpc.test_garbled_noise import check as check_coins
from tests.support.garbled import garbled_study, without_points
from tests.support.sessions import first_chunk
from tests.support.studies import KENDALL, LOUD
from tests.support.transfers import altered, flip
from umpc.crypto.rounds import run_in_memory
from umpc.errors import RemoteProtocolError, StudyError
from umpc.mpc.transfers.kept_roots import KeptRoots

CHECKED = {"transfers": "checked"}


class ChainedRun(GarbledRun):
    """A run of two nodes that may have roots of earlier runs."""

    def __init__(self, shelves, **changes):
        super().__init__(**changes)
        self.agree().begin()
        for node, shelf in zip(self.nodes, shelves, strict=True):
            node.use_roots(shelf)
        self.seed()

    def end(self, *, keep: bool = True) -> None:
        for node in self.nodes:
            node.end_roots(keep=keep)


def shelves() -> list[KeptRoots]:
    return [KeptRoots(lambda: 0.0) for _ in range(2)]


def shares(run: GarbledRun) -> list[bytes]:
    run.fields().evaluate()
    return [node.release().share for node in run.nodes]


def test_a_second_study_takes_no_points_and_adds_up(monkeypatch):
    both = shelves()
    first = ChainedRun(both)
    run_in_memory(first.ends())
    shares(first)
    first.end()
    assert [len(shelf) for shelf in both] == [1, 1]
    second = ChainedRun(both)
    with monkeypatch.context() as patch:
        patch.setattr("umpc.mpc.transfers.base_ot.multiple", None)
        run_in_memory(second.ends())
    assert shares(second)


def test_a_study_that_failed_leaves_nothing():
    both = shelves()
    first = ChainedRun(both).set_up()
    first.end(keep=False)
    assert [len(shelf) for shelf in both] == [0, 0]
    first.end()
    assert [len(shelf) for shelf in both] == [0, 0]


@pytest.mark.parametrize("fields", [{}, {"x": ("0", "200")}], ids=["gates", "pieces"])
def test_checked_studies_are_exact_in_the_bytes_that_were_predicted(fields):
    """Labels take checked transfers, and so do comparisons by pieces."""
    changes = {"edges": "all", "epsilon": LOUD, **fields}
    with without_points():
        run = check_sums(garbled_study(KENDALL, 3, **changes, **CHECKED), [5, 3, 4], "checked")
        usual = check_sums(garbled_study(KENDALL, 3, **changes), [5, 3, 4], "checked")
    assert run.report.estimate == usual.report.estimate
    assert run.report.bytes_online > usual.report.bytes_online
    assert run.report.bytes_offline > usual.report.bytes_offline


def test_a_committees_coins_take_checked_transfers_too():
    with without_points():
        check_coins(garbled_study(KENDALL, 3, noise="in_mpc", **CHECKED), [4, 3, 2], "checked")


def test_checked_choices_that_do_not_fit_together_name_the_evaluator():
    run = GarbledRun(**CHECKED).agree().begin().seed().set_up()
    messages = run.nodes[EVALUATOR].fields_for(GARBLER)
    changed = bytearray(messages[0].payload)
    changed[-1] ^= 1
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        run.nodes[GARBLER].receive_fields(
            EVALUATOR, [replace(messages[0], payload=bytes(changed)), *messages[1:]]
        )
    assert (caught.value.culprit, caught.value.step) == ("node-1", "ot_extend")


def test_a_chunks_choices_are_checked_too():
    wide = {"x": ("0", "200")}
    run = GarbledRun(**wide, **CHECKED).agree().begin().seed().set_up().fields()
    chunk = first_chunk(run)
    parties = run.protocols(chunk)
    parties[EVALUATOR] = altered(parties[EVALUATOR], "coins", flip(-5, 1))
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        run_in_memory(parties)
    assert caught.value.culprit == "node-1"


@pytest.mark.parametrize("place", [7000, 8200])
def test_checked_trees_that_do_not_fit_name_the_evaluator(place):
    run = GarbledRun(**CHECKED).agree().begin().seed()
    ends = run.ends()
    ends[EVALUATOR] = altered(ends[EVALUATOR], "ot_trees", flip(place, 255))
    with pytest.raises(RemoteProtocolError) as caught, without_points():
        run_in_memory(ends)
    assert (caught.value.culprit, caught.value.step) == ("node-1", "ot_trees")


def test_checked_transfers_go_with_garbled_edges():
    with pytest.raises(StudyError, match="checked"):
        garbled_study(KENDALL, backend="triples", **CHECKED)
    with pytest.raises(StudyError, match="unchecked"):
        garbled_study(KENDALL, transfers="perhaps")
