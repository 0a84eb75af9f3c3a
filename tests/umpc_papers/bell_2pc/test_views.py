"""The parties' views of noisy pairs: nothing depends on another node's records, and nobody knows a
pair's noise.

Whole studies in memory, REPEATED for each of two data sets, with the real transfers but for the
base ones. node-0 garbles, node-1 evaluates. The response has BITS bits, so that its law is exact,
small and far from certain: a wrong value has a probability of WRONG. Both data sets have the same
kernel values pair by pair, so that what is released has one law, and what else is seen must have
one, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from tests.support.bell import bell_study, clear_values, noisy_values, remembered, share_of
from tests.support.doors import limits
from tests.support.limits import no_mask_of_choices
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.studies import Entropy, table
from tests.support.transfers import extension_rows
from umpc.mpc.garbled import plan as garbled_plan
from umpc.mpc.garbled.sides import EvaluatingSide, GarblingSide
from umpc.simulation import Simulated, simulate
from umpc.testing import lying
from umpc_papers.bell_2pc import noise_binding, pair_mechanisms
from umpc_papers.testing import lying as lying_papers

RECORDS = 10
REPEATED = 12
"""RECORDS² × REPEATED samples per data set, of pairs between the nodes."""
BITS = 3
WRONG = 3 / 8
"""⌈2^3/(e^ε0 + 1)⌉/2^3 for ε0 = 1/2."""
EPSILON, EDGES = "9.5", "all"
"""Each record is in 19 pairs."""
ZEROS, ONES = table([0] * RECORDS, [0] * RECORDS), table([1] * RECORDS, [1] * RECORDS)
DATA = {
    "both sides change": ("a.x == b.x", [(ZEROS, ZEROS), (ONES, ONES)]),
    "the other's record changes": ("a.x * b.x", [(ZEROS, ZEROS), (ZEROS, ONES)]),
}
"""Kernel and the (observer's, other's) records of either data set. In both [f] between nodes is the
same.
"""


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    with remembered(), limits() as limit:
        limit(pair_mechanisms, BITS=BITS)
        limit(noise_binding, BITS=BITS)
        limit(garbled_plan, EDGES=RECORDS**2 // 2)  # two chunks
        with lying_papers("everybody", wrong_odds=lambda *_: 3):
            yield


def drawn(run: Simulated, node: int) -> np.ndarray:
    """The random bits that a node drew for its pairs with the other: (bits, pairs) uint8."""
    side = run.nodes[node].cells.sides[1 - node]
    plan = next(iter(run.attempt.program.plans.values()))
    rows = [
        side.own_bits(plan, chunk).reshape(len(plan.coin_wires), -1)
        for chunk in run.attempt.chunks()
    ]
    return np.concatenate(rows, axis=1)


def frames(run: Simulated, step: str) -> list[np.ndarray]:
    return [
        np.frombuffer(frame.payload, np.uint8)
        for *_, frame in run.transcript.online
        if frame.step == step
    ]


def extension(run: Simulated) -> np.ndarray:
    """(32 digits, bits, pairs) uint8: the garbler's view of all chunks' extensions, row by row."""
    chunks = zip(run.attempt.chunks(), frames(run, "coins"), strict=True)
    return np.concatenate([rows_of(payload, chunk.count) for chunk, payload in chunks], axis=2)


def rows_of(payload: np.ndarray, count: int) -> np.ndarray:
    sent = extension_rows(payload.tobytes(), BITS * count)
    rows = np.unpackbits(sent, axis=1, bitorder="little")
    return rows[:, : BITS * count].reshape(32, BITS, count)


def coin_labels(run: Simulated) -> np.ndarray:
    """(bits, pairs) uint8: the colours of the active labels of random bits, as the evaluator sees
    them.

    Made again from its channel, as its forks can be.
    """
    side, plan = run.nodes[1].cells.sides[0], next(iter(run.attempt.program.plans.values()))
    rows = []
    for chunk in run.attempt.chunks():
        channel = side.channel.fork("coins", *chunk.owners, chunk.number)
        blocks = channel.extend(side.own_bits(plan, chunk))[0].blocks
        rows.append((blocks[:, 0] & 1).reshape(len(plan.coin_wires), -1).astype(np.uint8))
    return np.concatenate(rows, axis=1)


def joint(*bits: np.ndarray) -> np.ndarray:
    """Small categories of several columns of bits."""
    return sum(column.astype(np.int64) << place for place, column in enumerate(bits))


def observe(run: Simulated, observer: int) -> dict[str, np.ndarray]:
    """Categories of what a node sees, of each pair between the nodes, and of the coordinator's
    knowledge beside it.
    """
    own = drawn(run, observer)
    share = share_of(run, observer, (0, 1))[0]
    noisy = noisy_values(run)[0, 1][0]
    seen = {
        "own share": (share & 15).astype(np.int64),
        "own share, high": (share >> 28).astype(np.int64),
        "own shares of neighbours": (share[:-1] & 3).astype(np.int64) * 4
        + (share[1:] & 3).astype(np.int64),
        "noisy value and own draw": joint(noisy, *own),
    }
    if observer == 0:
        rows = extension(run)
        return seen | {
            "extension": joint(rows[0, 0], rows[1, 0], rows[31, 0], rows[0, 1]),
            "extension, own draw and noisy value": joint(noisy, rows[0, 2], rows[31, 2], own[-1]),
        }
    labels = frames(run, "labels")[0].reshape(-1, 16)
    colors = coin_labels(run)
    ands = frames(run, "garbled")[0]
    return seen | {
        "labels": (labels[:, 0] & 15).astype(np.int64),
        "tables": (ands[::16] & 15).astype(np.int64)[:64],
        "labels of random bits": joint(*colors),
        "labels of random bits, own draw and noisy value": joint(
            noisy, colors[-1], own[-1], colors[-2], own[-2]
        ),
    }


UNIFORM = {
    "own share": 16,
    "own share, high": 16,
    "own shares of neighbours": 16,
    "extension": 16,
    "labels": 16,
}
UNIFORM |= {"tables": 16, "labels of random bits": 8}


def views(observer: int, seed: str, which: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    kernel, data = DATA[which]
    study = bell_study(kernel, 2, noise="randomised_response", epsilon=EPSILON, edges=EDGES)
    samples = []
    for number, tables in enumerate(data):
        entropy = Entropy(f"{seed} {which} {observer} {number}")
        sample = [
            observe(simulate(study, tables[:: 1 - 2 * observer], entropy), observer)
            for _ in range(REPEATED)
        ]
        samples.append(
            {name: np.concatenate([each[name] for each in sample]) for name in sample[0]}
        )
    return {name: tuple(sample[name] for sample in samples) for name in samples[0]}


@pytest.mark.parametrize("which", DATA)
@pytest.mark.parametrize("observer", [0, 1])
def test_what_a_node_and_the_coordinator_see_does_not_depend_on_the_others_records(observer, which):
    for name, pair in views(observer, "bell views", which).items():
        p = homogeneity(*pair)
        assert p > ALPHA, (
            f"{name} tells the data sets apart: p = {p:.1e}, N = {len(pair[0])} each, "
            f"node-{observer}"
        )
        if name in UNIFORM:
            p = min(uniformity(sample, UNIFORM[name]) for sample in pair)
            assert p > ALPHA, (
                f"{name} is not uniform: p = {p:.1e}, N = {len(pair[0])} each, node-{observer}"
            )


# --- nobody knows the noise
# ---------------------------------------------------------------------------------


def independence(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of "the two say nothing of each other" (chi-square of the table)."""
    size = int(second.max()) + 1
    counts = np.bincount(first.astype(np.int64) * size + second.astype(np.int64)).astype(float)
    counts = np.pad(counts, (0, -len(counts) % size)).reshape(-1, size)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    return float(stats.chi2_contingency(counts).pvalue) if min(counts.shape) > 1 else 1.0


def noise_findings(seed: str) -> dict[str, float]:
    """p-values of all that is said about the noise of pairs; each must be large."""
    study = bell_study("a.x == b.x", 2, noise="randomised_response", epsilon=EPSILON, edges=EDGES)
    rng = np.random.default_rng(5)
    flips, inner, draws, chunks, rows = [], [], ([], []), [], []
    for number in range(REPEATED):
        x = rng.integers(0, 2, (2, RECORDS))
        tables = [table(each, each) for each in x]
        run = simulate(study, tables, Entropy(f"{seed} {number}"))
        noisy, clear = noisy_values(run), clear_values(study, tables, run)
        flip = (noisy[0, 1] != clear[0, 1])[0]
        flips.append(flip)
        inner += [(noisy[node, node] != clear[node, node])[0] for node in (0, 1)]
        for node in (0, 1):
            draws[node].append(joint(*drawn(run, node)))
        first, second = [chunk for chunk in run.attempt.chunks()]
        assert first.count == second.count == RECORDS**2 // 2
        chunks.append((flip[first.start : first.stop], flip[second.start : second.stop]))
        one, two = (
            rows_of(payload, first.count)[:2].reshape(2, -1) for payload in frames(run, "coins")
        )
        rows.append(one ^ two)
    flip, right = np.concatenate(flips), lambda sample: np.array([(~sample).sum(), sample.sum()])

    def law(sample: np.ndarray) -> float:
        expected = len(sample) * np.array([1 - WRONG, WRONG])
        return stats.chisquare(right(sample), expected).pvalue

    return {
        "law between nodes": float(law(flip)),
        "law inside a node": float(law(np.concatenate(inner))),
        "garbler's draw": independence(flip, np.concatenate(draws[0])),
        "evaluator's draw": independence(flip, np.concatenate(draws[1])),
        "chunks": independence(*(np.concatenate([each[of] for each in chunks]) for of in (0, 1))),
        "extensions of chunks": independence(
            *(np.concatenate([each[of] for each in rows]) for of in (0, 1))
        ),
        "neighbours": independence(flip[:-1], flip[1:]),
    }


def test_nobody_knows_a_pairs_noise_and_no_two_pairs_share_it():
    for name, p in noise_findings("noise").items():
        assert p > ALPHA, f"{name}: p = {p:.1e}, N = {REPEATED * RECORDS**2}"


def test_shares_of_a_pair_are_released_by_its_owners_and_by_nobody_else():
    """Three nodes: node-2 has no share of pairs of node-0 and node-1, and its own say nothing of
    them.
    """
    study = bell_study("a.x == b.x", 3, noise="randomised_response", epsilon=EPSILON, edges=EDGES)
    run = simulate(study, [ZEROS, ONES, ZEROS], Entropy("three"))
    assert all(2 in owners for owners in run.attempt.cells_of(2))
    assert len(run.transcript.shares[2]) == 4 * (2 * RECORDS**2 + RECORDS * (RECORDS - 1) // 2)
    links = {(sender, receiver) for sender, receiver, _ in run.transcript.online}
    assert len(links) == 6, "every message goes from one owner of its cell to the other"
    for sender, receiver, frame in run.transcript.online:
        assert {int(sender[-1]), int(receiver[-1])} == set(frame.owners)


# --- power: the same tests find every protection that is left out
# -------------------------------------------


def zeros_of(kind: type):
    """One kind of side draws zeros."""

    def own_bits(honest, side, plan, chunk) -> np.ndarray:
        return honest(side, plan, chunk) * np.uint8(not isinstance(side, kind))

    return lying("node", own_bits=own_bits)


def garblers_bit_left_out():
    """A coin is the evaluator's draw alone."""
    return zeros_of(GarblingSide)


def evaluators_choices_all_zero():
    """A coin is the garbler's draw alone."""
    return zeros_of(EvaluatingSide)


def same_coins_in_every_chunk():
    def derive(honest, seed, *labels):
        return honest(seed, *(labels[:-1] if labels[0] == "coins" else labels))

    return lying("node", derive=derive)


def same_fork_in_every_chunk():
    """Two extensions have equal pads: the garbler sees the XOR of the evaluator's draws."""
    return lying("node", fork=lambda honest, side, *labels: honest(side, *labels[:-1]))


def no_noise_inside_a_node():
    return lying_papers("node", apply_all=lambda honest, values, *_: values)


def one_coin_for_neighbours():
    """Both sides draw once for every two pairs."""

    def own_bits(honest, side, plan, chunk):
        bits = honest(side, plan, chunk).reshape(len(plan.coin_wires), -1)
        return np.repeat(bits[:, ::2], 2, axis=1)[:, : bits.shape[1]].ravel()

    return lying("node", own_bits=own_bits)


@pytest.mark.parametrize(
    ("mutate", "finder"),
    [
        (garblers_bit_left_out, "evaluator's draw"),
        (evaluators_choices_all_zero, "garbler's draw"),
        (same_coins_in_every_chunk, "chunks"),
        (same_fork_in_every_chunk, "extensions of chunks"),
        (no_noise_inside_a_node, "law inside a node"),
        (one_coin_for_neighbours, "neighbours"),
    ],
)
def test_power_noise_that_somebody_knows_is_found(mutate, finder):
    with mutate():
        p = noise_findings("power")[finder]
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}"


@pytest.mark.parametrize(
    ("mutate", "observer", "finder"),
    [
        (no_mask_of_choices, 0, "extension"),
        (evaluators_choices_all_zero, 0, "noisy value and own draw"),
        (garblers_bit_left_out, 1, "noisy value and own draw"),
    ],
)
def test_power_a_view_that_tells_more_is_found(mutate, observer, finder):
    """The first one's extension is not uniform; the others' draw says which noisy values are
    right.
    """
    with mutate():
        sample = views(observer, "power", "the other's record changes")[finder][0]
    p = uniformity(sample, 16) if finder == "extension" else independence(sample & 1, sample >> 1)
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}"
