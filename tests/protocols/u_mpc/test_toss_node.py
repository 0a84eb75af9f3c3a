"""A committee's coins at the sessions: after the set-up, once, and nothing is released without
them.
"""

from __future__ import annotations

import pytest

from tests.protocols.u_mpc.test_garbled_node import GarbledRun, names
from tests.support.sessions import Run
from tests.support.tossing import altered_mesh
from tests.support.transfers import WRONG_SHAPES
from umpc.crypto.rounds import run_mesh
from umpc.errors import LocalProtocolError, RemoteProtocolError


class TossRun(GarbledRun):
    """A run of two nodes, of which node-0 sends in transfers."""

    def __init__(self, counts=(3, 4), **changes):
        super().__init__(counts, noise="in_mpc", **changes)

    def toss(self, step: str = "", change=None, liar: int = 0) -> TossRun:
        parties = [node.toss() for node in self.nodes]
        if change:
            parties[liar] = altered_mesh(parties[liar], step, change)
        run_mesh(parties)
        return self


def prepared() -> TossRun:
    return TossRun().agree().begin().seed()


def test_coins_are_tossed_once():
    run = prepared().set_up().toss()
    with pytest.raises(LocalProtocolError, match="tossed before"):
        run.nodes[1].toss()


def test_a_toss_that_was_begun_and_not_ended_counts_as_none():
    run = prepared().set_up()
    next(run.nodes[0].toss())
    run.fields().evaluate()
    with pytest.raises(LocalProtocolError, match="no noise"):
        run.nodes[0].release()


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({"noise": "in_mpc", "coins": "dealt"}, Run), ({}, Run), ({}, GarbledRun)],
    ids=["dealt", "dealer", "none"],
)
def test_other_studies_have_nothing_to_toss(changes, kind):
    run = kind((3, 4), **changes).agree().begin().seed()
    assert [node.toss() for node in run.nodes] == [None, None]


@pytest.mark.parametrize(("step", "liar"), [("toss", 0), ("toss", 1), ("ot_open_bits", 1)])
@pytest.mark.parametrize(
    "shape", ["one byte less", "nothing", "a huge count", "no value", "another step"]
)
def test_a_message_of_another_shape_names_its_sender(step, liar, shape):
    run = prepared().set_up()
    with pytest.raises(RemoteProtocolError) as caught:
        run.toss(step, WRONG_SHAPES[shape], liar)
    assert names(caught.value) == (f"node-{liar}", step)
