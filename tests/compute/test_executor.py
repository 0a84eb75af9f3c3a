"""umpc.compute: every place computes the same bytes, and a chunk's masks serve once."""

from __future__ import annotations

import asyncio
import pickle
import threading
from dataclasses import replace

import pytest

from tests.support.sessions import Run
from tests.support.spread import evaluated, small_chunks
from umpc.compute.executor import CoreThreads, InlineExecutor
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Finished, run_in_memory
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.masked.tasks import TaskRounds

KERNELS = ("sign(a - b)",)


def test_every_place_computes_the_same_messages_and_shares():
    run = lambda: small_chunks(Run((40, 50), edges=600, label="places").agree().begin())  # noqa: E731
    plain = evaluated(run(), None)
    assert len(plain.sent) > 4 and plain.chunks > 2
    threads = CoreThreads(2)
    try:
        for place in (InlineExecutor(), threads):
            assert evaluated(run(), place) == plain
    finally:
        threads.close()
