"""The compiled kernel deals, sends and sums as numpy does, bit for bit, on every kind here."""

from __future__ import annotations

import numpy as np
import pytest

from tests.mpc.masked.test_batches import TREE_KEY, Chunks, chunks_of
from tests.support.kernels import KERNELS, TRIPLE_KERNELS
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.masked import kernel_rows, tasks
from umpc.native import programs
from umpc.native.programs import Code, EdgeProgram, KeyStream

CASES = [(KERNELS, name, (0, 1)) for name in KERNELS]
CASES += [(TRIPLE_KERNELS, name, p) for name in TRIPLE_KERNELS for p in ((0, 1, 2), (1, 0, 1))]


def everything(chunks: Chunks, count: int) -> tuple:
    """What the dealer and all owners of one chunk say, and their sums."""
    one = Chunks(chunks.plan, chunks.known, chunks.places, chunks.records, (count,))
    ((*materials,),) = one.deal([0])
    owners = [one.alone(party, 0, data) for party, data in enumerate(materials)]
    return materials, *run_in_memory([o.protocol(FixedKeyHash(TREE_KEY)) for o in owners])


@pytest.mark.parametrize(("kernels", "name", "pattern"), CASES)
def test_kernel_equals_numpy(kernels, name, pattern, monkeypatch):
    chunks = chunks_of(kernels[name], pattern)
    for count in (1, 8, 13, 40):
        found = []
        with monkeypatch.context() as patch:
            patch.setattr(tasks, "serves", lambda plan: False)
            expected = everything(chunks, count)
        for kind in programs.kinds():
            with monkeypatch.context() as patch:
                patch.setattr(programs, "CHOSEN", kind)
                patch.setattr(tasks, "serves", lambda plan: plan.remembered("s", SERVED))
                found.append(everything(chunks, count))
        assert all(each == expected for each in found)


SERVED = kernel_rows._is_served


def test_a_key_stream_crosses_tiles_and_blocks():
    """Rows of 3,001 edges begin anywhere in a block; numpy has the stream's bytes."""
    from umpc.crypto.prg import Stream

    seed, count = bytes(range(32)), 3001
    octets = Stream(seed).octets(5 * 376)
    for kind in programs.kinds():
        program = EdgeProgram()
        for number in range(5):
            to = program.row("to", number)
            program.add(Code.COPY, to, program.row("stream", number))
        written = np.zeros((5, 376), dtype=np.uint8)
        program.run(count, {"to": written, "stream": KeyStream(seed)}, kind)
        assert written.tobytes() == octets.tobytes()


def test_a_source_that_is_too_short_is_refused():
    program = EdgeProgram()
    program.add(Code.COPY, program.row("to", 1), program.row("from", 0))
    for kind in programs.kinds():
        with pytest.raises(ValueError, match="are due"):
            program.run(9, {"to": np.zeros(3, np.uint8), "from": bytes(2)}, kind)
