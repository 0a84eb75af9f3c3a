"""The compiled kernel deals, sends and sums as numpy does, bit for bit, on every kind here."""

from __future__ import annotations

import numpy as np
import pytest

from tests.mpc.masked.test_batches import TREE_KEY, Chunks, chunks_of, run_together
from tests.support.kernels import KERNELS, TRIPLE_KERNELS
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.crypto.rounds import Message, run_in_memory
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.mpc.masked import tasks
from umpc.mpc.masked.compiled import rows
from umpc.mpc.masked.tasks import TaskRounds
from umpc.native import programs
from umpc.native.programs import Code, EdgeProgram, Joined, KeyStreams, Parts

CASES = [(KERNELS, name, (0, 1)) for name in KERNELS]
CASES += [(TRIPLE_KERNELS, name, p) for name in TRIPLE_KERNELS for p in ((0, 1, 2), (1, 0, 1))]
HASH = FixedKeyHash(TREE_KEY)


def everything(chunks: Chunks, count: int) -> tuple:
    """Return all material and messages of one chunk, and the owners' sums."""
    one = Chunks(chunks.plan, chunks.known, chunks.places, chunks.records, (count,))
    ((*materials,),) = one.deal([0])
    owners = [one.alone(party, 0, data) for party, data in enumerate(materials)]
    return materials, *run_in_memory([owner.protocol(HASH) for owner in owners])


@pytest.mark.parametrize(("kernels", "name", "pattern"), CASES)
def test_kernel_equals_numpy(kernels, name, pattern, monkeypatch):
    chunks = chunks_of(kernels[name], pattern)
    for count in (1, 8, 13, 40):
        with monkeypatch.context() as patch:
            patch.setattr(tasks, "serves", lambda plan: False)
            expected = everything(chunks, count)
        for kind in programs.kinds():
            with monkeypatch.context() as patch:
                patch.setattr(programs, "CHOSEN", kind)
                patch.setattr(tasks, "serves", rows.is_served)
                assert everything(chunks, count) == expected


@pytest.mark.parametrize(("kernels", "name", "pattern"), CASES)
def test_a_batch_in_one_call_equals_numpys_single_chunks(kernels, name, pattern, monkeypatch):
    made = chunks_of(kernels[name], pattern)
    chunks = Chunks(made.plan, made.known, made.places, made.records, (8, 24, 8))
    each = range(len(chunks.counts))
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "serves", lambda plan: False)
        material = [*map(chunks.deal, ([chunk] for chunk in each))]
        material = [of_chunk for (of_chunk,) in material]
        alone = []
        for chunk in each:
            owners = [chunks.alone(p, chunk, data) for p, data in enumerate(material[chunk])]
            alone.append(run_in_memory([owner.protocol(HASH) for owner in owners]))
    for kind in programs.kinds():
        with monkeypatch.context() as patch:
            patch.setattr(programs, "CHOSEN", kind)
            patch.setattr(tasks, "serves", rows.is_served)
            assert chunks.deal([*each]) == material
            owners = [TaskRounds(chunks.together(p, material)) for p in chunks.plan.everybody]
            results, sent = run_together(owners)
        for chunk, (sums, lines) in enumerate(alone):
            assert [of_party[chunk] for of_party in results] == sums
            messages = {(line.round, line.party): line.message for line in lines}
            for number, of_round in enumerate(sent, 1):
                for party, of_party in enumerate(of_round):
                    if of_party[chunk].width:
                        assert of_party[chunk] == messages[number, party]


def test_a_message_of_another_length_in_a_batch_names_its_sender():
    made = chunks_of(KERNELS["auc"], (0, 1))
    chunks = Chunks(made.plan, made.known, made.places, made.records, (8, 24, 8))
    material = chunks.deal([0, 1, 2])
    rounds = chunks.together(0, material).protocol(HASH)
    next(rounds)
    theirs = next(chunks.together(1, material).protocol(HASH))
    short = theirs[1]
    theirs[1] = Message("open", short.payload[:-1], short.count, short.width, short.round)
    with pytest.raises(RemoteProtocolError) as caught:
        rounds.send([(message,) for message in theirs])
    assert caught.value.culprit == chunks.names(1)[1]


def test_comparisons_by_tables_are_served_and_opened_numbers_are_not():
    served = {name for name in KERNELS if rows.is_served(chunks_of(KERNELS[name], (0, 1)).plan)}
    assert "auc" in served
    assert "gini_mean_difference" not in served


def served_chunk() -> tuple[Chunks, list[bytes]]:
    """A chunk of 13 edges that the kernel computes where there is one, and its material."""
    chunks = chunks_of(KERNELS["auc"], (0, 1))
    assert rows.is_served(chunks.plan)
    one = Chunks(chunks.plan, chunks.known, chunks.places, chunks.records, (13,))
    ((*materials,),) = one.deal([0])
    return one, materials


def test_material_of_another_length_is_refused_at_once():
    one, materials = served_chunk()
    for wrong in (materials[1][:-1], materials[1] + b"\0"):
        with pytest.raises(EncodingError):
            one.alone(1, 0, wrong).protocol(HASH)


@pytest.mark.parametrize("party", [0, 1])
def test_a_message_of_another_length_names_its_sender(party):
    one, materials = served_chunk()
    rounds = one.alone(party, 0, materials[party]).protocol(HASH)
    said = next(rounds)
    short = Message("open", said.payload[:-1], said.count, said.width, said.round)
    with pytest.raises(RemoteProtocolError) as caught:
        rounds.send((short,))
    assert caught.value.culprit == one.names(0)[1 - party]


def test_a_key_stream_crosses_tiles_and_blocks():
    """Rows of 3,001 edges begin anywhere in a block; numpy has the stream's bytes."""
    seed, count = bytes(range(32)), 3001
    octets = Stream(seed).octets(5 * 376)
    for kind in programs.kinds():
        program = EdgeProgram()
        for number in range(5):
            to = program.row("to", number)
            program.add(Code.COPY, to, program.row("stream", number))
        written = np.zeros((5, 376), dtype=np.uint8)
        program.run([count], {"to": Parts([written]), "stream": KeyStreams([seed])}, kind)
        assert written.tobytes() == octets.tobytes()


def test_a_source_that_is_too_short_is_refused():
    program = EdgeProgram()
    program.add(Code.COPY, program.row("to", 1), program.row("from", 0))
    for kind in programs.kinds():
        with pytest.raises(ValueError, match="are due"):
            to = Joined(np.zeros(8, np.uint8), [0, 4, 8])
            program.run([9, 9], {"to": to, "from": Parts([bytes(2), bytes(1)])}, kind)
