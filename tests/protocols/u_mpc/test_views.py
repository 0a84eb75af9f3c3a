"""Whole studies in memory: views that say nothing of the others, material used once, and the exact
noise.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, reduce
from operator import xor

import numpy as np
import pytest
from scipy import stats

from tests.support.limits import small_chunks
from tests.support.mpc_studies import ALPHA, RUNS, homogeneity, uniformity
from tests.support.protocols import noise_of
from tests.support.statistical import chi_square
from tests.support.studies import (
    KENDALL,
    LOUD,
    SKEWNESS,
    Entropy,
    clear_sums,
    compiled_once,
    make_study,
    random_tables,
    table,
)
from umpc.crypto.ring import Ring
from umpc.mpc import attempt
from umpc.mpc.masked import compiler
from umpc.mpc.masked import plan_items as lookup_comparison
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.testing import limited, lying


@pytest.fixture(autouse=True, scope="module")
def fast():
    with compiled_once():
        yield


# --- views: node-1's view and the shares do not depend on node-0's records
# ----------------------------------

DATA = (table([0], [0]), table([1], [1]))
"""Node-0's record in either data set."""


def observe(run: Simulated) -> dict[str, int]:
    """Small categories by name: node-1's view of node-0, and the coordinator's and node-2's view of
    the shares.
    """
    online = {(s, r, f.step): f.payload for s, r, f in run.transcript.online}
    theirs, own = (
        online[*link, "masked_fields"] for link in (("node-0", "node-1"), ("node-1", "node-0"))
    )
    their_bits, own_bits = (
        online[*link, "open"][0] for link in (("node-0", "node-1"), ("node-1", "node-0"))
    )
    bits = their_bits ^ own_bits
    material = next(
        f.payload for _, r, f in run.transcript.offline if (r, f.step) == ("node-1", "material")
    )
    shares = [int.from_bytes(share, "little") for share in run.transcript.shares]
    return {
        "masked fields": theirs[0] & 3 | (theirs[1] & 3) << 2,
        "bits sent": their_bits & 15,
        "bits opened": bits & 15,
        "masked difference of x and its bits": (theirs[0] - own[0]) & 3 | (bits & 3) << 2,
        "masked difference of y and its bits": (theirs[1] - own[1]) & 3 | (bits >> 2 & 3) << 2,
        "first byte of material": material[0] & 15,
        "last element share of material": material[-4] & 15,
        "share of node-0, low": shares[0] & 15,
        "share of node-0, high": shares[0] >> 28,
        "shares of node-0 and node-2": shares[0] & 3 | (shares[2] & 3) << 2,
        "share of node-0 and masked field": shares[0] & 3 | (theirs[0] & 3) << 2,
    }


def views(seed: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """RUNS studies over either data set: per name the two samples."""
    study = make_study(KENDALL, 3, x=("0", "1"), y=("0", "1"))
    samples = []
    for number, mine in enumerate(DATA):
        entropy = Entropy(f"{seed} {number}")
        tables = [mine, table([1], [0]), table([0], [1])]
        samples.append([observe(simulate(study, tables, entropy)) for _ in range(RUNS)])
    return {
        name: tuple(np.array([s[name] for s in sample]) for sample in samples)
        for name in samples[0][0]
    }


def p_of(found: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    return {name: homogeneity(*pair) for name, pair in found.items()}


def test_what_others_see_of_a_study_does_not_depend_on_a_nodes_record():
    found = views("views")
    for name, p in p_of(found).items():
        assert p > ALPHA, (
            f"{name} tells the data sets apart: p = {p:.1e}, N = {RUNS} per data set, seed 'views'"
        )
    for name in (
        "masked fields",
        "share of node-0, low",
        "share of node-0, high",
        "shares of node-0 and node-2",
    ):
        p = min(uniformity(sample, 16) for sample in found[name])
        assert p > ALPHA, (
            f"{name} is not uniform: p = {p:.1e}, N = {RUNS} per data set, seed 'views'"
        )


def no_masks():
    return lying("everybody", wire_masks=lambda honest, *a: [mask * 0 for mask in honest(*a)])


def no_sigma():
    """Bits are opened as they are. Dealer and owners leave out the masks."""

    def expand_all(honest, *arguments):
        part = honest(*arguments)
        for mask in part.bit_masks.values():
            mask[:] = 0
        return part

    return lying("everybody", expand_all=expand_all)


@pytest.mark.parametrize(
    ("mutate", "finder"),
    [(no_masks, "masked fields"), (no_sigma, "masked difference of x and its bits")],
)
def test_power_a_study_without_a_protection_is_found(mutate, finder):
    with mutate():
        p = p_of(views("power"))
    assert p[finder] < ALPHA, f"the mutant passes with p = {p[finder]:.1e}, N = {RUNS}"


# --- the same where comparisons are in pieces, of two and of three owners
# ------------------------------------------------------------------------------


def observe_rounds(run: Simulated) -> dict[str, int]:
    """node-1's view of node-0 in an edge of all nodes: its masked record, and each round's bits,
    opened.
    """
    seen, opened = {}, {}
    for sender, receiver, frame in run.transcript.online:
        if frame.step == "open" and (
            receiver == "node-1" or (sender, receiver) == ("node-1", "node-0")
        ):
            opened.setdefault(frame.round, []).append(frame.payload)
            if sender == "node-0":
                seen[f"round {frame.round}, sent"] = frame.payload[0] & 15
        elif (sender, receiver) == ("node-0", "node-1"):
            seen["masked field"] = frame.payload[0] & 15
    for round, payloads in opened.items():
        assert len(payloads) == len(run.attempt.study.nodes)
        seen[f"round {round}, opened"] = reduce(xor, (payload[0] for payload in payloads))
    last = run.transcript.shares[0]
    return seen | {"share, low": last[0] & 15, "share, high": last[-1] >> 4}


def views_in_pieces(owners: int, seed: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The views of one edge, compared by pieces of one bit: node-0's record is one of two.

    Other comparisons are ties: of the pair (1, 1) or (3, 1), of the triple (0, 1, 2) or (3, 1, 2).
    """
    if owners == 3:
        study = make_study(SKEWNESS, 3, degree=3, x=("0", "3"))
    else:
        study = make_study(KENDALL, 2, x=("0", "3"), y=("0", "3"))
    samples = []
    with limited(attempt, FEW_EDGES=0), limited(lookup_comparison, ONE_PIECE=1, PIECE=1):
        compiler.program_of.cache_clear()
        for number, mine in enumerate((1 if owners == 2 else 0, 3)):
            entropy = Entropy(f"{seed} {number}")
            tables = [table([x], [0]) for x in (mine, 1, 2)[:owners]]
            samples.append([observe_rounds(simulate(study, tables, entropy)) for _ in range(RUNS)])
        compiler.program_of.cache_clear()
    return {
        name: tuple(np.array([s[name] for s in sample]) for sample in samples)
        for name in samples[0][0]
    }


@pytest.mark.parametrize("owners", [2, 3])
def test_what_others_see_of_pieces_does_not_depend_on_a_nodes_record(owners):
    found = views_in_pieces(owners, "pieces")
    assert {
        f"round {number}, {what}" for number in (1, 2) for what in ("sent", "opened")
    } < found.keys()
    for name, p in p_of(found).items():
        assert p > ALPHA, (
            f"{name} tells the data sets apart: p = {p:.1e}, N = {RUNS} per data set, seed 'pieces'"
        )
    for name in ("share, low", "share, high", "round 1, sent", "round 2, sent"):
        p = min(uniformity(sample, 16) for sample in found[name])
        assert p > ALPHA, (
            f"{name} is not uniform: p = {p:.1e}, N = {RUNS} per data set, seed 'pieces'"
        )


@pytest.mark.parametrize("owners", [2, 3])
@pytest.mark.parametrize(
    ("mutate", "finder"), [(no_masks, "masked field"), (no_sigma, "round 2, opened")]
)
def test_power_pieces_without_a_protection_are_found(mutate, finder, owners):
    with mutate():
        p = p_of(views_in_pieces(owners, "power"))
    assert p[finder] < ALPHA, f"the mutant passes with p = {p[finder]:.1e}, N = {RUNS}"


# --- shares and material
# --------------------------------------------------------------------------------------


def share_samples(seed: str) -> list[np.ndarray]:
    """The share of a node with one inner edge and no peer, as the coordinator sees it, for two data
    sets.
    """
    study, samples = make_study(KENDALL, 2, epsilon=LOUD), []
    for number, mine in enumerate((table([0, 1], [0, 1]), table([0, 1], [1, 0]))):
        entropy = Entropy(f"{seed} {number}")
        runs = (simulate(study, [mine, table([], [])], entropy) for _ in range(RUNS))
        samples.append(
            np.array([int.from_bytes(run.transcript.shares[0], "little") & 15 for run in runs])
        )
    return samples


def test_a_share_is_uniform_even_where_a_node_is_alone_with_its_edges():
    """A disconnected E would otherwise reveal partial sums."""
    samples = share_samples("alone")
    p = min(homogeneity(*samples), *(uniformity(sample, 16) for sample in samples))
    assert p > ALPHA, f"p = {p:.1e}, N = {RUNS} per data set, seed 'alone'"


def test_power_a_study_without_zero_shares_is_found():
    with lying("node", zero_shares=lambda *_: [0]):
        assert homogeneity(*share_samples("power")) < ALPHA


@pytest.mark.parametrize(
    "changes", [{}, {"kernels": SKEWNESS, "degree": 3}], ids=["pairs", "triples"]
)
def test_two_attempts_at_one_study_reuse_nothing(changes):
    study, tables = make_study(nodes=3, **changes), random_tables([3, 3, 3], "twice")
    runs = [simulate(study, tables, Entropy(f"twice {i}")) for i in range(2)]
    assert runs[0].attempt.id != runs[1].attempt.id
    payloads = [
        {
            f.payload
            for *_, f in run.transcript.offline + run.transcript.online
            if len(f.payload) > 3
        }
        for run in runs
    ]
    assert not payloads[0] & payloads[1]


def test_no_material_goes_to_two_nodes_or_into_two_chunks(monkeypatch, limit):
    small_chunks(limit)
    run = simulate(make_study(nodes=3), random_tables([6, 7, 5], "reuse"), Entropy("reuse"))
    blocks = [
        f.payload[i : i + 12]
        for _, r, f in run.transcript.offline
        for i in range(0, len(f.payload) - 11, 12)
        if f.step == "material" and r == run.attempt.study.nodes[f.owners[-1]].name
    ]
    assert len(set(blocks)) == len(blocks) > 200


# --- noise end to end
# ---------------------------------------------------------------------------------------

NOISE_RUNS = 700
NODES, COLLUDING = 3, 1


@cache
def noise_of_runs(seed: str) -> list[int]:
    """Estimate minus the exact sum over the same E, in units, over many fresh runs."""
    study, entropy = make_study(nodes=NODES, max_colluding=COLLUDING), Entropy(seed)
    tables, draws = random_tables([1, 1, 0], "noise"), []
    for _ in range(NOISE_RUNS):
        run = simulate(study, tables, entropy)
        (released,) = noisy_sums(run.transcript.shares, 1)
        (exact,) = clear_sums(study, tables, run.attempt.hypergraph)
        assert run.report.estimate == released
        draws.append(released - exact)
    return draws


def exact_law() -> tuple[np.ndarray, int]:
    """The distribution function of N shares, h = N − t: NB(N/h) − NB(N/h), q = exp(−ε/s), s = 2, by
    convolution.
    """
    support = np.arange(400)
    half = stats.nbinom.pmf(support, NODES / (NODES - COLLUDING), -np.expm1(-1 / 2))
    return np.cumsum(np.convolve(half, half[::-1])), 399


def noise_p(draws: list[int]) -> float:
    cumulative, zero = exact_law()
    return chi_square(draws, lambda x: float(cumulative[np.clip(x + zero, 0, 798)]), -300, 300)


def test_the_noise_of_a_study_has_the_exact_law():
    study = make_study(nodes=NODES, max_colluding=COLLUDING)
    run = simulate(study, random_tables([1, 1, 0], "noise"), Entropy("law"))
    (noise,) = noise_of(run.attempt.sizes)
    assert (noise.sensitivity, noise.nodes, noise.honest, noise.log_ratio) == (
        2,
        3,
        2,
        Fraction(1, 2),
    )
    p = noise_p(noise_of_runs("noise"))
    assert p > ALPHA, f"not the law: p = {p:.1e}, N = {NOISE_RUNS}, seed 'noise'"


def test_power_noise_of_a_wrong_scale_is_found():
    with lying("everybody", log_ratio=lambda honest, law: honest(law) / Fraction(7, 10)):
        p = noise_p(noise_of_runs("power"))
    assert p < ALPHA, f"a scale × 0.7 passes with p = {p:.1e}, N = {NOISE_RUNS}"


def test_the_report_says_how_large_the_noise_is():
    draws = np.array(noise_of_runs("noise"), dtype=float)
    run = simulate(
        make_study(nodes=NODES, max_colluding=COLLUDING),
        random_tables([1, 1, 0], "noise"),
        Entropy("law"),
    )
    assert run.attempt.ring == Ring(32) and run.report.edges == 1
    assert abs(draws.std() / run.report.noise_std - 1) < 0.25, "seed 'noise'"
