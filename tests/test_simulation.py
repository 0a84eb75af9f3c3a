"""Whole studies in memory: exact results, golden transcripts, views that say nothing of the others, exact noise."""

from __future__ import annotations

import os
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from umpc.agreement import noise_of
from umpc.coordinator.report import noisy_sum
from umpc.dp.calibration import DistributedLaplace
from umpc.mpc.masks import wire_masks
from umpc.mpc.material import SeededPart
from umpc.mpc.ring import Ring
from umpc.simulation import Simulated, simulate

from .dp.statistical import chi_square
from .mpc.studies import (
    ALPHA,
    GINI,
    KENDALL,
    RUNS,
    Entropy,
    exact_sum,
    homogeneity,
    make_study,
    random_tables,
    table,
    uniformity,
)

TRANSCRIPTS = Path(__file__).parent / "mpc" / "transcripts"
WRITE = "UMPC_WRITE_TRANSCRIPTS"
"""UMPC_WRITE_TRANSCRIPTS=1 pytest tests/test_simulation.py writes the transcripts anew; then read the difference."""

LOUD = "1000000000"
"""An ε under which there is no noise: the exact sum comes out."""


# --- results ------------------------------------------------------------------------------------------------

SPLITS = ([9], [5, 6], [9, 1], [6, 0, 5], [1, 1], [1, 0, 17, 4, 2], [1, 3] * 8)


@pytest.mark.parametrize("edges", ["2n", "all", "1"])
@pytest.mark.parametrize("counts", SPLITS, ids=str)
@pytest.mark.parametrize("kernel", [KENDALL, GINI, "a.x + b.x", "a.x * b.x", "3"])
def test_without_noise_the_estimate_is_the_mean_in_the_clear(kernel, counts, edges):
    label = f"exact {kernel} {counts} {edges}"
    study, tables = make_study(kernel, len(counts), edges=edges, epsilon=LOUD), random_tables(counts, label)
    run = simulate(study, tables, Entropy(label))
    expected = exact_sum(study, tables, run.attempt) * study.parsed_kernel.unit / run.report.edges
    assert run.report.estimate == float(expected), label


def test_many_chunks_give_the_same_as_one(monkeypatch):
    study, tables = make_study(nodes=3, epsilon=LOUD), random_tables([9, 30, 5], "chunks")
    one = simulate(study, tables, Entropy("chunks")).report.estimate
    monkeypatch.setattr("umpc.mpc.plan.MAX_CHUNK", 8)
    monkeypatch.setattr("umpc.mpc.evaluation.FIELDS_BYTES", 20)
    assert simulate(study, tables, Entropy("chunks")).report.estimate == one


def test_a_field_at_both_bounds_of_a_wide_domain():
    study = make_study(GINI, 2, epsilon="1e30", x=("-4503599627370496", "4503599627370496"))
    tables = [table([-(2**52), 2**52], [0, 0]), table([2**52, 0], [0, 0])]
    assert simulate(study, tables, Entropy("wide")).report.estimate == float(Fraction(2**52 * 7, 6))


# --- the golden transcript ----------------------------------------------------------------------------------


def transcript_text(run: Simulated, comment: str) -> str:
    """One line a message: round, sender, receiver, step, values, bits of a value, bytes with framing."""
    sent = run.transcript
    lines = [("deal", *link, f.step, f.count, f.width, f.wire_bytes) for *link, f in sent.offline]
    rounds = {"masked_fields": 1, "open_bits": 2}
    lines += [(rounds[f.step], *link, f.step, f.count, f.width, f.wire_bytes) for *link, f in sent.online]
    width = run.attempt.ring.bits
    names = [node.name for node in run.attempt.study.nodes]
    lines += [(3, name, "coordinator", "share", 1, width, len(s)) for name, s in zip(names, sent.shares, strict=True)]
    rows = [f"{a!s:5} {b:7} {c:12} {d:14} {e:5} {f:6} {g:6}" for a, b, c, d, e, f, g in lines]
    head = f"{'round':5} {'sender':7} {'receiver':12} {'step':14} {'count':>5} {'width':>6} {'bytes':>6}"
    report = run.report
    total = f"# online {report.bytes_online} bytes in {report.rounds} rounds, dealt {report.bytes_offline} bytes"
    return "\n".join([*(f"# {line}" for line in comment.splitlines()), head, *rows, total, ""])


TINY = {
    "kendall_tiny": (
        KENDALL,
        "Kendall's tau over x, y in 0..3: three nodes with 2, 1 and 1 records, all 6 pairs, of which node-0 has one\n"
        "inside itself. Dealt: a seed per node; per edge two 12-byte keys (96 + 96 bits), and for the second owner\n"
        "8 products of masks in the ring of 32 bits. Round 1: two wires of 3 bits a record. Round 2: 4 bits an edge.",
    ),
    "gini_tiny": (
        GINI,
        "Gini mean difference over x in 0..3, same nodes. One wire at the ring's width, since it enters a product;\n"
        "one comparison, of which only [<] is opened; 2 products of masks.",
    ),
}


@pytest.mark.parametrize("name", TINY)
def test_the_transcript_is_the_golden_one(name):
    kernel, comment = TINY[name]
    run = simulate(make_study(kernel, 3), random_tables([2, 1, 1], name), Entropy(name))
    text, path = transcript_text(run, comment), TRANSCRIPTS / f"{name}.txt"
    if os.environ.get(WRITE):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; if that is meant, write it anew with {WRITE}=1"


def test_the_same_entropy_gives_the_same_bytes_and_other_entropy_other_bytes():
    study, tables = make_study(nodes=3), random_tables([2, 1, 1], "bytes")
    runs = [simulate(study, tables, Entropy(label)).transcript for label in ("one", "one", "two")]
    assert runs[0] == runs[1]
    assert not {f.payload for *_, f in runs[0].offline} & {f.payload for *_, f in runs[2].offline}
    assert runs[0].shares != runs[2].shares


# --- views: node-1's view and the shares do not depend on node-0's records ----------------------------------

DATA = (table([0], [0]), table([1], [1]))
"""Node-0's record in either data set."""


def observe(run: Simulated) -> dict[str, int]:
    """What node-1 sees of node-0, and the coordinator and node-2 of the shares: small categories by name."""
    online = {(s, r, f.step): f.payload for s, r, f in run.transcript.online}
    theirs, own = (online[*link, "masked_fields"] for link in (("node-0", "node-1"), ("node-1", "node-0")))
    their_bits, own_bits = (online[*link, "open_bits"][0] for link in (("node-0", "node-1"), ("node-1", "node-0")))
    bits = their_bits ^ own_bits
    material = next(f.payload for _, r, f in run.transcript.offline if (r, f.step) == ("node-1", "material"))
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
    return {name: tuple(np.array([s[name] for s in sample]) for sample in samples) for name in samples[0][0]}


def p_of(found: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    return {name: homogeneity(*pair) for name, pair in found.items()}


def test_what_others_see_of_a_study_does_not_depend_on_a_nodes_record():
    found = views("views")
    for name, p in p_of(found).items():
        assert p > ALPHA, f"{name} tells the data sets apart: p = {p:.1e}, N = {RUNS} per data set, seed 'views'"
    for name in ("masked fields", "share of node-0, low", "share of node-0, high", "shares of node-0 and node-2"):
        p = min(uniformity(sample, 16) for sample in found[name])
        assert p > ALPHA, f"{name} is not uniform: p = {p:.1e}, N = {RUNS} per data set, seed 'views'"


def no_masks(monkeypatch) -> None:
    for module in ("umpc.node.session", "umpc.dealer.session"):
        monkeypatch.setattr(f"{module}.wire_masks", lambda *a: [mask * np.uint64(0) for mask in wire_masks(*a)])


def no_sigma(monkeypatch) -> None:
    real = SeededPart.expand.__func__

    def expand(cls, *arguments):
        part = real(cls, *arguments)
        part.sigma[:] = 0
        return part

    monkeypatch.setattr(SeededPart, "expand", classmethod(expand))


@pytest.mark.parametrize(
    ("mutate", "finder"),
    [(no_masks, "masked fields"), (no_sigma, "masked difference of x and its bits")],
)
def test_power_a_study_without_a_protection_is_found(monkeypatch, mutate, finder):
    mutate(monkeypatch)
    p = p_of(views("power"))
    assert p[finder] < ALPHA, f"the mutant passes with p = {p[finder]:.1e}, N = {RUNS}"


def share_samples(seed: str) -> list[np.ndarray]:
    """The share of a node with one inner edge and no peer, as the coordinator sees it, for two data sets."""
    study, samples = make_study(KENDALL, 2, epsilon=LOUD), []
    for number, mine in enumerate((table([0, 1], [0, 1]), table([0, 1], [1, 0]))):
        entropy = Entropy(f"{seed} {number}")
        runs = (simulate(study, [mine, table([], [])], entropy) for _ in range(RUNS))
        samples.append(np.array([int.from_bytes(run.transcript.shares[0], "little") & 15 for run in runs]))
    return samples


def test_a_share_is_uniform_even_where_a_node_is_alone_with_its_edges():
    """A disconnected E would otherwise reveal partial sums."""
    samples = share_samples("alone")
    p = min(homogeneity(*samples), *(uniformity(sample, 16) for sample in samples))
    assert p > ALPHA, f"p = {p:.1e}, N = {RUNS} per data set, seed 'alone'"


def test_power_a_study_without_zero_shares_is_found(monkeypatch):
    monkeypatch.setattr("umpc.node.session.zero_share", lambda *a: 0)
    assert homogeneity(*share_samples("power")) < ALPHA


def test_two_attempts_at_one_study_reuse_nothing():
    study, tables = make_study(nodes=3), random_tables([3, 3, 3], "twice")
    runs = [simulate(study, tables, Entropy(f"twice {i}")) for i in range(2)]
    assert runs[0].attempt.id != runs[1].attempt.id
    payloads = [
        {f.payload for *_, f in run.transcript.offline + run.transcript.online if len(f.payload) > 3} for run in runs
    ]
    assert not payloads[0] & payloads[1]


def test_no_material_goes_to_two_nodes_or_into_two_chunks(monkeypatch):
    monkeypatch.setattr("umpc.mpc.plan.MAX_CHUNK", 8)
    run = simulate(make_study(nodes=3), random_tables([6, 7, 5], "reuse"), Entropy("reuse"))
    blocks = [
        f.payload[i : i + 12]
        for _, r, f in run.transcript.offline
        for i in range(0, len(f.payload) - 11, 12)
        if f.step == "material" and r == run.attempt.study.nodes[f.owners[0]].name
    ]
    assert len(set(blocks)) == len(blocks) > 200


# --- noise end to end ---------------------------------------------------------------------------------------

NOISE_RUNS = 700
NODES, COLLUDING = 3, 1


@cache
def noise_of_runs(seed: str) -> list[int]:
    """Estimate minus the exact sum over the same E, in units, over many runs with fresh randomness."""
    study, entropy = make_study(nodes=NODES, colluding=COLLUDING), Entropy(seed)
    tables, draws = random_tables([1, 1, 0], "noise"), []
    for _ in range(NOISE_RUNS):
        run = simulate(study, tables, entropy)
        assert run.report.estimate == noisy_sum(run.transcript.shares)
        draws.append(noisy_sum(run.transcript.shares) - exact_sum(study, tables, run.attempt))
    return draws


def exact_law() -> tuple[np.ndarray, int]:
    """The distribution function of N shares, h = N − t: NB(N/h) − NB(N/h), q = exp(−ε/s), s = 2, by convolution."""
    support = np.arange(400)
    half = stats.nbinom.pmf(support, NODES / (NODES - COLLUDING), -np.expm1(-1 / 2))
    return np.cumsum(np.convolve(half, half[::-1])), 399


def noise_p(draws: list[int]) -> float:
    cumulative, zero = exact_law()
    return chi_square(draws, lambda x: float(cumulative[np.clip(x + zero, 0, 798)]), -300, 300)


def test_the_noise_of_a_study_has_the_exact_law():
    study = make_study(nodes=NODES, colluding=COLLUDING)
    run = simulate(study, random_tables([1, 1, 0], "noise"), Entropy("law"))
    noise = noise_of(run.attempt.sizes)
    assert (noise.sensitivity, noise.nodes, noise.honest, noise.log_ratio) == (2, 3, 2, Fraction(1, 2))
    p = noise_p(noise_of_runs("noise"))
    assert p > ALPHA, f"not the law: p = {p:.1e}, N = {NOISE_RUNS}, seed 'noise'"


def test_power_noise_of_a_wrong_scale_is_found(monkeypatch):
    real = DistributedLaplace.log_ratio.fget
    monkeypatch.setattr(DistributedLaplace, "log_ratio", property(lambda self: real(self) / Fraction(7, 10)))
    p = noise_p(noise_of_runs("power"))
    assert p < ALPHA, f"a scale × 0.7 passes with p = {p:.1e}, N = {NOISE_RUNS}"


def test_the_report_says_how_large_the_noise_is():
    draws = np.array(noise_of_runs("noise"), dtype=float)
    run = simulate(make_study(nodes=NODES, colluding=COLLUDING), random_tables([1, 1, 0], "noise"), Entropy("law"))
    assert run.attempt.ring == Ring(32) and run.report.edges == 1
    assert abs(draws.std() / run.report.noise_std - 1) < 0.25, "seed 'noise'"
