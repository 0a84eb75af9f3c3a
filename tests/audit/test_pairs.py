"""Noisy pairs on their worst neighbours: all values of a record's pairs within ε together.

They also have the exact law. There are two records, one of them replaced, in P pairings: each of
the P pairs joins both records and changes by the whole range. Colluders see every noisy value, and
no node knows any noise. The transfers are those of `bell.without_transfers`, since only the release
is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.audit.auditor import MORE, Tables, Verdict, broken_by, loss_bound
from tests.audit.mutants import Broken, Mutant
from tests.support.bell import (
    EQUAL,
    bell_study,
    clear_values,
    noisy_values,
    pmf_of,
    without_transfers,
)
from tests.support.protocols import noise_of
from tests.support.studies import KENDALL, Entropy, make_attempt, table
from umpc.dp.committee import CommitteeLaplace
from umpc.protocols.registry import delta_of
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.testing import lying
from umpc_papers.bell_2pc.pair_mechanisms import BITS, PairLaplace
from umpc_papers.testing import lying as lying_in_papers

LAW, BOTH = ("law",), ("loss", "law")


@dataclass(frozen=True, eq=False)
class Case:
    """A study, two neighbouring tables, and the runs on each that `make test` can afford."""

    name: str
    study: Study
    tables: tuple[Tables, Tables]
    runs: int


def whole_epsilon_for_every_pair() -> Broken:
    """ε0 = ε for any number of a record's pairs. Loss: that number times ε."""
    return lying_in_papers("everybody", epsilon_of_pair=lambda honest, epsilon, *rest: epsilon)


def half_the_range_of_a_pair() -> Broken:
    """Δ of a pair's noise is half of the kernel's range. Loss 2ε."""

    def half(honest, epsilon, width: int, *rest) -> PairLaplace:
        return honest(epsilon, width // 2, *rest)

    return lying_in_papers("everybody", PairLaplace=half)


def no_noise_inside_a_node() -> Broken:
    """Values of pairs inside a node leave without noise. Unbounded loss."""
    return lying_in_papers("node", apply_all=lambda honest, values, noises, words: values)


def one_number_for_every_pair() -> Broken:
    """All pairs of a chunk share their random bits, so differences of values are exact."""

    def own_bits(honest, side, plan, chunk):
        return np.repeat(honest(side, plan, replace(chunk, stop=chunk.start + 1)), chunk.count)

    return lying("node", own_bits=own_bits)


def no_circuits_noise() -> Broken:
    """No coin inside a circuit falls. Unbounded loss."""
    return lying_in_papers("everybody", coins=lambda honest, law: SILENT)


SILENT = CommitteeLaplace(Fraction(40), 1, BITS)

ZERO, ONE = (table([x], [x]) for x in (0, 1))
NOBODY = table([], [])
CHANGED = (ONE, ZERO), (ONE, ONE)
"""node-1's only record is replaced, and all pairs change from different to equal."""
INSIDE = (table([0, 1], [0, 1]), NOBODY), (table([0, 0], [0, 0]), NOBODY)
FALLING = (ONE, table([0], [2])), (ONE, table([0], [0]))
"""Kendall's tau of the one pair from −1 to 1."""
WIDE = {"x": ("0", "2"), "y": ("0", "2")}
RESPONSE = {"noise": "randomised_response"}
FAR = 60
"""Values that are further off are counted together."""
MANY = BOTH if MORE >= 8 else LAW
"""The mutants that few runs find by the law of two pairs; the loss takes `make audit`."""

AUDITS = {
    Case("pair_laplace, P = 1", bell_study(EQUAL, epsilon="3/2"), CHANGED, 130): {
        no_circuits_noise: BOTH
    },
    Case("pair_laplace, P = 2", bell_study(EQUAL, epsilon="3/2", edges="2p"), CHANGED, 90): {
        whole_epsilon_for_every_pair: MANY,
        one_number_for_every_pair: LAW,
    },
    Case("pair_laplace, P = 12", bell_study(EQUAL, epsilon="1", edges="12p"), CHANGED, 110): {
        whole_epsilon_for_every_pair: BOTH
    },
    Case("pair_laplace, range 2", bell_study(KENDALL, epsilon="3/2", **WIDE), FALLING, 150): {
        half_the_range_of_a_pair: MANY
    },
    Case(
        "pair_laplace, inside a node", bell_study(EQUAL, epsilon="3/2", edges="2p"), INSIDE, 130
    ): {no_noise_inside_a_node: BOTH},
    Case(
        "randomised_response, P = 2",
        bell_study(EQUAL, epsilon="2", edges="2p", **RESPONSE),
        CHANGED,
        200,
    ): {whole_epsilon_for_every_pair: MANY},
    Case(
        "randomised_response, delta, P = 20",
        bell_study(EQUAL, epsilon="1", delta="0.01", edges="20p", **RESPONSE),
        CHANGED,
        110,
    ): {whole_epsilon_for_every_pair: BOTH},
}


def outputs(case: Case, tables: Tables, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all noisy values and all clear ones, run by run: (runs, pairs) each."""
    entropy, noisy, clear = Entropy(f"{case.name}, {label}"), [], []
    with without_transfers():
        for _ in range(case.runs * MORE):
            run = simulate(case.study, tables, entropy)
            for found, values in (
                (noisy, noisy_values(run)),
                (clear, clear_values(case.study, tables, run)),
            ):
                found.append(np.concatenate([values[owners][0] for owners in sorted(values)]))
    return np.array(noisy), np.array(clear)


def audit(case: Case, mutant: Mutant | None = None) -> Verdict:
    """Run a case and judge it. The claim is always the real code's."""
    sizes = make_attempt(case.study, [len(t["x"]) for t in case.tables[0]]).sizes
    (law,), epsilon, delta = (
        noise_of(sizes),
        float(case.study.exact_epsilon),
        float(delta_of(sizes)),
    )
    pmf = pmf_of(law)
    with broken_by(mutant) as name:
        found = [
            outputs(case, tables, f"table {number}") for number, tables in enumerate(case.tables)
        ]
    exact = [clear[0] for _, clear in found]
    assert all((clear == clear[0]).all() for _, clear in found) and sizes.edges == sizes.max_degree
    scores = [score(pmf, noisy, *exact) for noisy, _ in found]
    thresholds = epsilon * (1 - 1e-9), 1e-9, -epsilon * (1 - 1e-9)
    loss = loss_bound(*scores, thresholds, delta)
    p = min(1.0, 3 * min(*(value_law_p(pmf, *each) for each in found), pairs_p(found)))
    verdict = Verdict(f"{case.name}: {name}", len(scores[0]), loss, epsilon, p)
    print(verdict)
    return verdict


def score(pmf: Callable, noisy: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return log P'(all values) / P(all values) under the claimed law of every pair: (runs,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(pmf(noisy, second)) - np.log(pmf(noisy, first))
    return np.nan_to_num(loss, nan=0.0, posinf=100.0, neginf=-100.0).sum(axis=1)


def value_law_p(pmf: Callable, noisy: np.ndarray, clear: np.ndarray) -> float:
    """Return the p-value of one table's noisy values under their law, by chi-square.

    Bins expect at least 8.
    """
    values = int(clear[0, 0]) + np.arange(-FAR, FAR + 1)
    expected = pmf(values, np.full(len(values), clear[0, 0])) * noisy.size
    seen = np.array([(noisy == value).sum() for value in values])
    often = expected >= 8
    assert often.sum() > 1, "no power: one bin"
    rest = np.array([noisy.size - seen[often].sum(), noisy.size - expected[often].sum()])
    if rest[1] < 1e-6 * noisy.size:
        return 0.0 if rest[0] else float(stats.chisquare(seen[often], expected[often]).pvalue)
    return float(stats.chisquare([*seen[often], rest[0]], [*expected[often], rest[1]]).pvalue)


def pairs_p(found: list) -> float:
    """Return the p-value of “no two pairs of a run have noise in common”.

    It is that of their correlation, by Fisher's transformation.
    """
    noise = np.concatenate([noisy - noisy.mean() for noisy, _ in found])
    if noise.shape[1] < 2 or not noise.any():
        return 1.0
    r = np.clip(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1], -1 + 1e-12, 1 - 1e-12)
    return float(2 * stats.norm.sf(abs(np.arctanh(r)) * np.sqrt(len(noise) - 3)))


@pytest.mark.parametrize("case", AUDITS, ids=lambda case: case.name)
def test_all_pairs_of_a_record_keep_the_promise_and_the_same_runs_find_broken_code(case):
    verdict = audit(case)
    assert verdict.sound, str(verdict)
    for mutant, finders in AUDITS[case].items():
        verdict = audit(case, mutant)
        assert verdict.caught_by(*finders), f"not found: {verdict}"
