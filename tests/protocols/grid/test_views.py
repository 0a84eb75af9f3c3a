"""Views of a grid's parties say nothing about a record, and broken code is found.

A node's share is hidden twice: by its share of aᵀAa, and by its zero share. Each view below knows
one of the two, so either alone must hide the share.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.grid import cells_of, grid_study
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.studies import KENDALL, Entropy, table
from umpc.crypto.prg import Stream
from umpc.crypto.ring import RINGS
from umpc.protocols.grid import masked_form as masks
from umpc.protocols.grid.masked_form import widened
from umpc.simulation import Simulated, simulate
from umpc.testing import lying

STUDY = grid_study(KENDALL, 3, x=("0", "1"), y=("0", "1"))
DATA = (table([0], [0]), table([1], [1]))
"""Node-0's record in either data set."""
OTHERS = (table([1], [0]), table([0], [1]))
SMALL = 1 << 12
"""Noise of these studies is smaller, but for a negligible chance."""
RUNS = 120
"""Studies over either data set."""
FEW = 40
"""Studies over either data set that find a mutant."""
UNIFORM = ("masked cell, low", "masked cell, high", "total less own cell", "share, low")


def frames_of(run: Simulated, sender: str) -> np.ndarray:
    """The masked histogram of a node, or the total for node-1."""
    told = [each for each in run.transcript.told if each[1] == "node-1"]
    sent = run.transcript.online + told
    frames = [frame for source, _, frame in sent if source == sender]
    return cells_of(frames, run.attempt.ring.bits)


def leftover(run: Simulated, known: int) -> int:
    """Whether node-0's share, without a part that is known, shows the cell of its record.

    The observer is the coordinator: it has node-0's masked table and the total.
    """
    (form,) = run.attempt.grid.forms
    bits = run.attempt.ring.bits
    total = widened(frames_of(run, "coordinator"))
    image = form.apply(total)
    share = int.from_bytes(run.transcript.shares[0], "little")
    bare = (
        share
        - known
        - RINGS[-1].inner(total, image)
        + 2 * RINGS[-1].inner(widened(frames_of(run, "node-0")), image)
    )
    cell = int(run.attempt.grid.cell_of(DATA[0])[0])
    rest = (bare - 2 * int(image[cell])) % (1 << bits)
    return int(min(rest, (1 << bits) - rest) < SMALL)


def observe(run: Simulated) -> dict[str, int]:
    """Return the coordinator's and node-1's views of node-0: small categories by name."""
    node = run.nodes[0]
    masked = frames_of(run, "node-0")
    share = int.from_bytes(run.transcript.shares[0], "little")
    others = int.from_bytes(run.transcript.shares[2], "little")
    bits = run.attempt.ring.bits
    return {
        "masked cell, low": int(masked[0]) & 15,
        "masked cell, high": int(masked[-1]) >> (bits - 4),
        "total less own cell": (
            int(frames_of(run, "coordinator")[0]) - int(frames_of(run, "node-1")[0])
        )
        & 15,
        "share, low": share & 15,
        "share and masked cell": share & 3 | (int(masked[0]) & 3) << 2,
        "shares of node-0 and node-2": share & 3 | (others & 3) << 2,
        "share, its part of the products known": leftover(run, node.table.numbers[0]),
        "share, its zero share known": leftover(run, node.zeros[0]),
    }


def views(seed: str, count: int = RUNS) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Some studies over either data set: per name the two samples."""
    samples = []
    for number, mine in enumerate(DATA):
        entropy = Entropy(f"{seed} {number}")
        runs = (simulate(STUDY, [mine, *OTHERS], entropy) for _ in range(count))
        samples.append([observe(run) for run in runs])
    return {
        name: tuple(np.array([seen[name] for seen in sample]) for sample in samples)
        for name in samples[0][0]
    }


def test_what_others_see_does_not_depend_on_a_nodes_record():
    found = views("grid views")
    for name, pair in found.items():
        p = homogeneity(*pair)
        assert p > ALPHA, f"{name} tells the data sets apart: p = {p:.1e}, N = {RUNS} each"
    for name in UNIFORM:
        p = min(uniformity(sample, 16) for sample in found[name])
        assert p > ALPHA, f"{name} is not uniform: p = {p:.1e}, N = {RUNS} each"


def no_zero_share():
    return lying("node", zero_shares=lambda honest, *given: [0] * given[-1])


def products_in_the_clear():
    """The last node gets aᵀAa as it is, and all others get 0."""
    is_clear = False

    def init(honest, dealing, attempt, entropy):
        honest(dealing, attempt, lambda count: bytes(count) if is_clear else entropy(count))

    def deal_one(honest, dealing, chunk):
        nonlocal is_clear
        is_clear = True
        yield from honest(dealing, chunk)
        is_clear = False

    return lying("dealer", init=init, deal_one=deal_one)


class Zeros(Stream):
    """Words that are all 0."""

    def words(self, count, dtype=np.uint64):
        return super().words(count, dtype) * np.dtype(dtype).type(0)


def no_mask():
    return lying("everybody", mask_stream=lambda honest, seed, attempt: Zeros(bytes(32)))


MUTANTS = [
    (no_zero_share, "share, its part of the products known"),
    (products_in_the_clear, "share, its zero share known"),
    (no_mask, "masked cell, low"),
]


@pytest.mark.parametrize(("mutate", "finder"), MUTANTS)
def test_power_a_grid_without_a_protection_is_found(mutate, finder):
    with mutate():
        p = homogeneity(*views("power", FEW)[finder])
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}, N = {FEW}"


# --- a mask serves one table ----------------------------------------------------------------------


def same_seeds():
    """The dealer deals the same seeds in every attempt."""

    def init(honest, dealing, attempt, entropy):
        honest(dealing, attempt, Entropy("again"))

    return lying("dealer", init=init)


def unbound_masks():
    """A mask does not depend on its attempt: it serves a second table."""
    return lying("everybody", mask_stream=lambda honest, seed, attempt: Stream(seed))


def tables_apart(seed: str) -> np.ndarray:
    """The difference of node-0's masked tables in two attempts, one record moved in between."""
    runs = [simulate(STUDY, [mine, *OTHERS], Entropy(f"{seed} {mine}")) for mine in DATA]
    first, second = (frames_of(run, "node-0") for run in runs)
    return (first - second).astype(np.int32)


def test_two_attempts_have_masks_that_are_independent():
    assert np.abs(tables_apart("two attempts")).min() > SMALL
    with same_seeds():
        assert np.abs(tables_apart("two attempts")).min() > SMALL


def test_power_a_mask_that_serves_two_tables_is_found():
    with same_seeds(), unbound_masks():
        assert sorted(tables_apart("power")) == [-1, 0, 0, 1]


def test_no_secret_is_shown():
    run = simulate(STUDY, [DATA[0], *OTHERS], Entropy("shown"))
    for shown in map(repr, (run.nodes[0], run.nodes[0].table, masks.mask_stream(bytes(32), b""))):
        assert "redacted" in shown
