"""Garbled studies over channels that were made before, and evaluators that lie in transfers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.protocols.u_mpc.test_garbled_node import EVALUATOR, GARBLER, GarbledRun
from tests.support.garbled import NO_DEALER, garbled_study, without_points
from tests.support.mpc_studies import seed_of
from tests.support.sessions import first_chunk
from tests.support.studies import KENDALL, LOUD, Entropy, make_study, random_tables
from tests.support.transfers import altered, flip
from umpc.crypto.rounds import run_in_memory
from umpc.errors import LocalProtocolError, RemoteProtocolError, StudyError
from umpc.mpc.garbled.plan import CHOICES_AT_ONCE
from umpc.mpc.transfers.channels import chain_receiver, chain_sender
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.mpc.transfers.message_shapes import extension_bytes
from umpc.protocols.registry import checked
from umpc.simulation import simulate
from umpc.study.messages import MAX_PAYLOAD


def channels(run: GarbledRun) -> list:
    return [node.channel(1 - node.index) for node in run.nodes]


def made_before(**changes) -> list:
    """Both ends of a channel that two nodes made after a study."""
    run = GarbledRun(**changes).agree().begin().seed().set_up()
    sender, receiver = channels(run)
    seeds = [seed_of(f"next {number}") for number in range(2)]
    made, _ = run_in_memory(
        [
            chain_sender(sender, seeds[0], fresh_delta(seeds[0]), b"next"),
            chain_receiver(receiver, seeds[1], b"next", "node-0"),
        ]
    )
    return made


@pytest.mark.parametrize("changes", [{}, {"x": ("0", "200")}], ids=str)
def test_a_study_over_a_channel_that_was_made_before_adds_up(changes):
    kept = made_before(**changes)
    run = GarbledRun(**changes).agree().begin().seed()
    for node, channel in zip(run.nodes, kept, strict=True):
        assert node.channel_peers == (1 - node.index,)
        node.take_up(1 - node.index, channel)
    assert sum_of(run) == sum_of(GarbledRun(**changes).agree().begin().seed().set_up())


def sum_of(run: GarbledRun) -> int:
    """The sum of a study's shares, without its noise."""
    run.fields().evaluate()
    ring = run.nodes[0].attempt.ring
    parts = [sum(each[0] for each in node.parts) for node in run.nodes]
    return ring.decode(sum(map(int, parts)) % (1 << ring.bits))


def test_an_attempt_forks_a_channel_and_takes_it_once_at_the_right_end():
    sender, receiver = made_before()
    run = GarbledRun().agree().begin().seed()
    garbler = run.nodes[GARBLER]
    with pytest.raises(LocalProtocolError, match="the other way round"):
        garbler.take_up(EVALUATOR, receiver)
    garbler.take_up(EVALUATOR, sender)
    taken = garbler.channel(EVALUATOR)
    assert taken.session != sender.session and taken.leaves.root != sender.leaves.root
    assert (taken.delta == sender.delta).all() and (
        garbler.cells.sides[1].delta == sender.delta
    ).all()
    with pytest.raises(LocalProtocolError, match="set up before"):
        garbler.take_up(EVALUATOR, sender)


@pytest.mark.parametrize("backend", ["shared", "garbled", "triples"])
def test_the_key_transfers_of_former_studies_has_no_effect(backend):
    """Such a study keeps its identity, and costs what it costs without the key."""
    alone = {} if backend == "shared" else NO_DEALER | {"backend": backend}
    changes = {"edges": "all", "epsilon": LOUD, **alone}
    studies = [
        checked(make_study(KENDALL, 3, **changes, **more))
        for more in ({}, {"transfers": "checked"})
    ]
    tables = random_tables([5, 3, 4], "key")
    with without_points():
        usual, run = (simulate(study, tables, Entropy("key")).report for study in studies)
    assert studies[0].hash != studies[1].hash and run.estimate == usual.estimate
    assert run.bytes_online == usual.bytes_online == usual.bytes_online_predicted
    assert run.bytes_offline == usual.bytes_offline == usual.bytes_offline_predicted


def test_choices_that_do_not_fit_together_name_the_evaluator():
    run = GarbledRun().agree().begin().seed().set_up()
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
    run = GarbledRun(**wide).agree().begin().seed().set_up().fields()
    chunk = first_chunk(run)
    parties = run.protocols(chunk)
    parties[EVALUATOR] = altered(parties[EVALUATOR], "coins", flip(-5, 1))
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        run_in_memory(parties)
    assert caught.value.culprit == "node-1"


@pytest.mark.parametrize("place", [7000, 8200])
def test_trees_that_do_not_fit_name_the_evaluator(place):
    run = GarbledRun().agree().begin().seed()
    ends = run.ends()
    ends[EVALUATOR] = altered(ends[EVALUATOR], "ot_trees", flip(place, 255))
    with pytest.raises(RemoteProtocolError) as caught, without_points():
        run_in_memory(ends)
    assert (caught.value.culprit, caught.value.step) == ("node-1", "ot_trees")


def test_another_value_of_the_key_is_refused():
    with pytest.raises(StudyError, match="unchecked"):
        garbled_study(KENDALL, transfers="perhaps")


def test_a_full_message_of_choices_fits_a_frame_with_its_proof():
    """Records with more bits than that go in several messages."""
    assert MAX_PAYLOAD * 0.98 < extension_bytes(CHOICES_AT_ONCE) <= MAX_PAYLOAD
