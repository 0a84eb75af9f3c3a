"""An aggregator that pools with the coordinator sees nothing of a person, and broken code is found.

Its own share is uniform, the other one's is under a mask, and the other one's final share is hidden
by its part of aᵀAa. The zero share hides nothing here: both aggregators know it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.protocols.grid.test_views import FEW, SMALL, frames_of, no_mask, products_in_the_clear
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.people import people_study
from tests.support.studies import KENDALL, Entropy, table
from umpc.crypto.ring import RINGS
from umpc.protocols.grid.masked_form import widened
from umpc.protocols.people.terms import SHARE
from umpc.simulation import Simulated, simulate

STUDY = people_study(KENDALL, x=("0", "1"), y=("0", "1"))
DATA = (table([0, 1, 0], [0, 0, 1]), table([1, 1, 0], [1, 0, 1]))
"""Three people; the first one has another value."""
RUNS = 120
UNIFORM = ("own cell, low", "own cell, high", "masked cell and own cell", "share, low")


def own_cells(run: Simulated, place: int) -> np.ndarray:
    return run.nodes[place].columns[SHARE].view(np.uint64)


def shows_the_table(run: Simulated) -> int:
    """Whether node-0's final share, less all that node-1 knows, is that of the first people.

    2·⟨h₀, A·Ĥ⟩ is what remains, and ⟨h₁, A·Ĥ⟩ is node-1's own.
    """
    (form,) = run.attempt.grid.forms
    bits, ring = run.attempt.ring.bits, RINGS[-1]
    total = widened(frames_of(run, "coordinator"))
    image = form.apply(total)
    bare = (
        int.from_bytes(run.transcript.shares[0], "little")
        - run.nodes[0].zeros[0]
        - ring.inner(total, image)
        + 2 * ring.inner(widened(frames_of(run, "node-0")), image)
    )
    due = 2 * ring.inner(run.attempt.grid.tabulate(DATA[0]), image)
    rest = (bare + 2 * ring.inner(own_cells(run, 1), image) - due) % (1 << bits)
    return int(min(rest, (1 << bits) - rest) < SMALL)


def observe(run: Simulated) -> dict[str, int]:
    """The views of node-1 with the coordinator: small categories by name."""
    own, masked = own_cells(run, 1), frames_of(run, "node-0")
    share = int.from_bytes(run.transcript.shares[0], "little")
    return {
        "own cell, low": int(own[0]) & 15,
        "own cell, high": int(own[-1]) >> 60,
        "masked cell and own cell": (int(masked[0]) + int(own[0])) & 15,
        "share, low": share & 15,
        "share, its zero share known": shows_the_table(run),
    }


def views(seed: str, count: int = RUNS) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Some studies over either people: per name the two samples."""
    samples = []
    for number, people in enumerate(DATA):
        entropy = Entropy(f"{seed} {number}")
        samples.append([observe(simulate(STUDY, [people], entropy)) for _ in range(count)])
    return {
        name: tuple(np.array([seen[name] for seen in sample]) for sample in samples)
        for name in samples[0][0]
    }


def test_what_an_aggregator_sees_does_not_depend_on_a_person():
    found = views("people views")
    for name, pair in found.items():
        p = homogeneity(*pair)
        assert p > ALPHA, f"{name} tells the people apart: p = {p:.1e}, N = {RUNS} each"
    for name in UNIFORM:
        p = min(uniformity(sample, 16) for sample in found[name])
        assert p > ALPHA, f"{name} is not uniform: p = {p:.1e}, N = {RUNS} each"


@pytest.mark.parametrize(
    ("mutate", "finder"),
    [
        (no_mask, "masked cell and own cell"),
        (products_in_the_clear, "share, its zero share known"),
    ],
)
def test_power_people_without_a_protection_are_found(mutate, finder):
    with mutate():
        p = homogeneity(*views("power", FEW)[finder])
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}, N = {FEW}"


def test_no_secret_is_shown():
    run = simulate(STUDY, [DATA[0]], Entropy("shown"))
    assert all("redacted" in repr(each) for each in (run.nodes[0], run.nodes[0].table))
