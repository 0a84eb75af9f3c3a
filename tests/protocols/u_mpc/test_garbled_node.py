"""Sessions without a dealer: each step once, and whatever a peer sends in place of what is due
names it.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.garbled import NO_DEALER, without_points
from tests.support.limits import small_garbled_messages
from tests.support.mpc_studies import seed_of
from tests.support.sessions import Run, first_chunk
from tests.support.studies import KENDALL
from tests.support.transfers import WRONG_SHAPES, altered, changes, cut, flip
from umpc.crypto.rounds import Message, run_in_memory
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.transfers.message_shapes import POINT_BYTES

SMALL = {"kernels": KENDALL, "edges": "all", **NO_DEALER}
GARBLER, EVALUATOR = 0, 1


class GarbledRun(Run):
    """A run of two nodes: node-0 garbles."""

    def __init__(self, counts=(3, 4), **changes):
        super().__init__(counts, **{**SMALL, **changes})

    def seed(self) -> GarbledRun:
        for number, node in enumerate(self.nodes):
            node.receive_seed(seed_of(f"node {number}"))
        return self

    def ends(self) -> list:
        return [self.nodes[GARBLER].set_up(EVALUATOR), self.nodes[EVALUATOR].set_up(GARBLER)]

    def set_up(self) -> GarbledRun:
        with without_points():
            run_in_memory(self.ends())
        return self

    def material(self, chunk, node) -> bytes:
        return b""


def prepared() -> GarbledRun:
    return GarbledRun().agree().begin().seed()


def names(error: RemoteProtocolError) -> tuple[str | None, str | None]:
    return error.culprit, error.step


# --- order
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [GARBLER, EVALUATOR])
def test_labels_and_choices_are_made_once(node):
    run = prepared().set_up()
    assert run.nodes[node].fields_for(1 - node)
    with pytest.raises(LocalProtocolError, match="made before"):
        run.nodes[node].fields_for(1 - node)


def test_a_chunk_waits_for_both_sides_labels_and_is_evaluated_once():
    run = prepared().set_up()
    chunk = first_chunk(run)
    for sender in (0, 1):
        with pytest.raises(LocalProtocolError, match="after its peers'"):
            run.protocols(chunk)
        run.send_fields(sender, 1 - sender)
    run.protocols(chunk)
    with pytest.raises(LocalProtocolError, match="evaluated once"):
        run.protocols(chunk)


def test_material_that_nobody_deals_is_refused():
    run = prepared().set_up().fields()
    with pytest.raises(EncodingError, match="no material"):
        run.nodes[0].protocol(first_chunk(run), b"x", run.attempt.tree_hash())


def test_a_whole_run_over_curve_points_adds_up_and_shows_nothing_of_itself():
    run = prepared()
    run_in_memory(run.ends())
    run.fields().evaluate()
    assert len({node.release().share for node in run.nodes}) == 2
    assert "redacted" in repr(run.nodes[0].cells) and "redacted" in repr(
        run.nodes[0].cells.sides[1]
    )


# --- the set-up
# ---------------------------------------------------------------------------------------------

SET_UP = {"ot_offer": EVALUATOR, "ot_choice": GARBLER, "ot_trees": EVALUATOR}


def refused_set_up(step: str, change) -> None:
    run, liar = prepared(), SET_UP[step]
    ends = run.ends()
    ends[liar] = altered(ends[liar], step, change)
    with pytest.raises(RemoteProtocolError) as caught:
        run_in_memory(ends)
    assert names(caught.value) == (f"node-{liar}", step)


@pytest.mark.parametrize(
    "shape", ["one byte less", "nothing", "a huge count", "no value", "another step"]
)
@pytest.mark.parametrize("step", SET_UP)
def test_a_set_up_message_of_another_shape_names_its_sender(step, shape):
    with without_points() if step == "ot_trees" else nullcontext():
        refused_set_up(step, WRONG_SHAPES[shape])


def points(encoding: bytes):
    return lambda message: replace(message, payload=encoding + message.payload[POINT_BYTES:])


BAD_POINTS = {
    "off the curve": points(b"\x02" + bytes(31)),
    "zero": points(b"\x01" + bytes(31)),
    "of order 2": points(b"\xec" + b"\xff" * 30 + b"\x7f"),
    "beyond the field": points(b"\xff" * POINT_BYTES),
}


@pytest.mark.parametrize("name", BAD_POINTS)
@pytest.mark.parametrize("step", ["ot_offer", "ot_choice"])
def test_a_point_that_is_none_names_its_sender(step, name):
    refused_set_up(step, BAD_POINTS[name])


# --- round 1
# ------------------------------------------------------------------------------------------------

LISTS = {
    "none": lambda messages: [],
    "one less": lambda messages: messages[:-1],
    "one twice": lambda messages: [messages[0], *messages[:-1]],
    "another order": lambda messages: [messages[-1], *messages[1:-1], messages[0]],
    "all twice": lambda messages: messages * 2,
}


def sent(limit, liar: int) -> tuple[GarbledRun, list[Message]]:
    """In several messages, of which the last is shorter."""
    small_garbled_messages(limit, labels=5, choices=8)
    run = prepared().set_up()
    messages = run.nodes[liar].fields_for(1 - liar)
    run.nodes[1 - liar].fields_for(liar)
    assert len(messages) > 1
    return run, messages


STEP = {GARBLER: "labels", EVALUATOR: "ot_extend"}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("liar", STEP)
def test_other_labels_or_batches_than_are_due_name_their_sender(limit, liar, name):
    if (liar, name) == (GARBLER, "one twice"):
        # Labels have no number. The link knows their places and refuses the copy (test_peers.py).
        return
    run, messages = sent(limit, liar)
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[1 - liar].receive_fields(liar, LISTS[name](messages))
    assert names(caught.value) == (f"node-{liar}", STEP[liar])


@pytest.mark.parametrize("liar", STEP)
def test_a_second_set_of_labels_or_batches_is_refused(limit, liar):
    run, messages = sent(limit, liar)
    run.nodes[1 - liar].receive_fields(liar, messages)
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[1 - liar].receive_fields(liar, messages)
    assert names(caught.value) == (f"node-{liar}", STEP[liar])


@pytest.mark.parametrize("shape", WRONG_SHAPES)
@pytest.mark.parametrize("liar", STEP)
def test_a_message_of_another_shape_names_its_sender(limit, liar, shape):
    run, messages = sent(limit, liar)
    messages[-1] = WRONG_SHAPES[shape](messages[-1])
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[1 - liar].receive_fields(liar, messages)
    assert names(caught.value) == (f"node-{liar}", STEP[liar])


# --- garbled edges
# ------------------------------------------------------------------------------------------


def evaluated(change) -> list[int]:
    """The evaluator's share of the first chunk, whose garbled edges are changed on the way."""
    run = prepared().set_up().fields()
    garbler, evaluator = run.protocols(first_chunk(run))
    message = next(garbler)
    next(evaluator)
    with pytest.raises(StopIteration) as stop:
        evaluator.send([change(message)])
    return stop.value.value


@pytest.mark.parametrize("shape", WRONG_SHAPES)
def test_garbled_edges_of_another_shape_name_the_garbler(shape):
    with pytest.raises(RemoteProtocolError) as caught:
        evaluated(WRONG_SHAPES[shape])
    assert names(caught.value) == ("node-0", "garbled")


def test_an_evaluator_that_answers_names_itself():
    run = prepared().set_up().fields()
    garbler, _ = run.protocols(first_chunk(run))
    message = next(garbler)
    with pytest.raises(RemoteProtocolError) as caught:
        garbler.send([message])
    assert names(caught.value) == ("node-1", "garbled")


@settings(max_examples=40)
@given(changes)
def test_damaged_garbled_edges_are_refused_or_give_another_share(change):
    try:
        assert all(0 <= share < 1 << 32 for share in evaluated(change))
    except RemoteProtocolError as error:
        assert names(error) == ("node-0", "garbled")


@settings(max_examples=40)
@given(liar=st.sampled_from(list(STEP)), change=changes)
def test_damaged_labels_and_batches_are_refused_or_give_another_share(liar, change):
    run = prepared().set_up()
    for sender in (GARBLER, EVALUATOR):
        messages = run.nodes[sender].fields_for(1 - sender)
        if sender == liar:
            messages[0] = change(messages[0])
        try:
            run.nodes[1 - sender].receive_fields(sender, messages)
        except RemoteProtocolError as error:
            assert names(error) == (f"node-{liar}", STEP[liar])
            return
    run.evaluate()


@pytest.mark.parametrize("length", [0, 1, 100])
def test_truncated_garbled_edges_are_refused_whatever_their_count_says(length):
    with pytest.raises(RemoteProtocolError, match="node-0"):
        evaluated(cut(length))


def test_a_changed_table_changes_the_share():
    right = evaluated(lambda message: message)
    wrong = [evaluated(flip(place, 255)) for place in np.arange(0, 400, 40)]
    assert right == evaluated(lambda message: message) and any(share != right for share in wrong)
