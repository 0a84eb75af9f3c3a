"""umpc.ustat.blocks: every block is done once, whoever computes it."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cores import computed_by, machine_of
from umpc.compute.place import ComputePlace
from umpc.ustat import clear
from umpc.ustat.blocks import CORES, in_blocks
from umpc.ustat.clear import evaluate_clear
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema


@pytest.fixture
def cores():
    """Three threads, the caller among them."""
    with ThreadPoolExecutor(2) as threads, computed_by(threads, 3):
        yield threads


@pytest.mark.usefixtures("cores")
def test_every_part_is_done_once_and_others_help():
    done: Counter[int] = Counter()
    both = threading.Barrier(2, timeout=30)  # the first two parts wait for each other

    def work(part: int) -> None:
        if part < 2:
            both.wait()
        done[part] += 1

    in_blocks(work, range(100))
    assert done == Counter(range(100))


def test_one_core_does_all_parts_in_order():
    done: list[int] = []
    with computed_by(None, 3):
        in_blocks(done.append, range(5))
    assert done == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("fails", [0, 99])
def test_a_part_that_fails_is_raised(fails):
    def work(part: int) -> None:
        if part == fails:
            raise ArithmeticError("this part")

    with pytest.raises(ArithmeticError, match="this part"):
        in_blocks(work, range(100))


def test_a_thread_of_the_place_divides_its_own_work_and_never_waits_for_ever(cores):
    done: Counter[int] = Counter()

    def outer(part: int) -> None:
        in_blocks(lambda inner: done.update([10 * part + inner]), range(4))

    jobs = [cores.submit(in_blocks, outer, range(3)) for _ in range(4)]  # more than its threads
    for job in jobs:
        job.result(timeout=60)
    assert set(done.values()) == {4} and len(done) == 12


def test_a_place_says_how_many_cores_compute_blocks():
    with machine_of(2), computed_by(None, 1):
        place = ComputePlace().open()
        assert CORES.count == 2 and CORES.threads is place.threads
        assert ComputePlace(1).open() is None and CORES.threads is None


# --- values of many edges in the clear ------------------------------------------------------------

SCHEMA = Schema([FieldSchema("x", Fraction(0), Fraction(99), Fraction(1))])


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("edges", [0, 7, 8, 40])
def test_values_by_blocks_are_those_of_one_block(limit, edges):
    kernel = Kernel.from_text("sign(a.x - b.x) * (a.x - b.x)", SCHEMA)
    pairs = [{"x": np.arange(edges) * step % 100} for step in (7, 11)]
    facts = (kernel.expression, SCHEMA, pairs, kernel.unit)
    whole = evaluate_clear(*facts)
    limit(clear, BLOCK_EDGES=7)
    found = evaluate_clear(*facts)
    assert found.dtype == np.int64 and found.tolist() == whole.tolist()


def test_one_record_with_many_others_is_not_cut(limit):
    kernel = Kernel.from_text("sign(a.x - b.x)", SCHEMA, symmetric=False)
    records = [{"x": np.array([50])}, {"x": np.arange(20) * 5}]
    limit(clear, BLOCK_EDGES=7)
    found = evaluate_clear(kernel.expression, SCHEMA, records, kernel.unit)
    assert found.tolist() == np.sign(50 - np.arange(20) * 5).tolist()
