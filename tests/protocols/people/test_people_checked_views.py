"""The check of people's total shows nothing that depends on a person, and broken code is found.

from __future__ import annotations

import numpy as np
import pytest

from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.people import people_study
from tests.support.studies import KENDALL, Entropy, table
from umpc.crypto import field
from umpc.simulation import Simulated, simulate
from umpc.study.settings import LYING_NODES
from umpc.testing import lying

STUDY = people_study(KENDALL, x=("0", "1"), y=("0", "1"), adversary=LYING_NODES)
DATA = (table([0, 1, 0], [0, 0, 1]), table([1, 1, 0], [1, 0, 1]))
"""Three people; the first one has another value."""
RUNS, FEW = 120, 40


def payloads(run: Simulated, step: str, sender: str) -> list[bytes]:
    told = (*run.transcript.online, *run.transcript.told)
    return [frame.payload for source, _, frame in told if (source, frame.step) == (sender, step)]


def observe(run: Simulated) -> dict[str, int]:
    """The view of node-1 and the coordinator of the check: small categories by name."""
    answer = payloads(run, "answer", "dealer")[0]
    words = np.frombuffer(answer[32:56], dtype="<u8")
    z = np.frombuffer(run.nodes[0].table.sign()[48:], dtype="<u8")
    commitment = payloads(run, "commitment", "node-0")[0]
    return {
        "T": int(words[0]) & 15,
        "U": int(words[2]) & 15,
        "z": int(z[0]) & 15,
        "commitment": commitment[0] & 15,
    }


def views(seed: str, count: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Some studies over either people: per name the two samples."""
    samples = []
    for number, people in enumerate(DATA):
        entropy = Entropy(f"{seed} {number}")
        samples.append([observe(simulate(STUDY, [people], entropy)) for _ in range(count)])
    return {
        name: tuple(np.array([seen[name] for seen in sample]) for sample in samples)
        for name in samples[0][0]
    }


def no_pads(honest, attempt, seed):
    """Pads of zeros."""
    return np.zeros(2, dtype=np.uint64), field.constant(0)


def test_what_is_seen_of_the_check_is_uniform_for_either_people():
    for name, pair in views("checked", RUNS).items():
        assert homogeneity(*pair) > ALPHA, f"{name} tells the people apart"
        assert min(uniformity(sample, 16) for sample in pair) > ALPHA, f"{name} is not uniform"


def test_power_without_pads_the_dealer_shows_alpha():
    with lying("everybody", pads=no_pads):
        found = views("bare", FEW)
    assert max(uniformity(sample, 16) for sample in found["U"]) < ALPHA


def test_frames_have_the_same_sizes_for_all_honest_tables():
    shapes = set()
    for number, people in enumerate(DATA):
        sent = simulate(STUDY, [people], Entropy(f"sizes {number}")).transcript
        shapes.add(
            tuple(
                (a, b, frame.step, len(frame.payload)) for a, b, frame in (*sent.online, *sent.told)
            )
        )
    assert len(shapes) == 1


@pytest.mark.parametrize("place", [0, 1])
def test_no_secret_is_in_a_text(place):
    run = simulate(STUDY, [DATA[0]], Entropy("shown"))
    node = run.nodes[place]
    assert all("redacted" in repr(each) for each in (node, node.table))
