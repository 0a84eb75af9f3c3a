"""A node's share: its part of each sum, plus noise, plus a zero share, and no update lost."""

from __future__ import annotations

import pytest

from tests.support.protocols import noise_of, run_own_steps
from tests.support.sessions import Run
from tests.support.studies import (
    AUC,
    GINI,
    KENDALL,
    SKEWNESS,
    SPEARMAN,
    TRIPLE,
    Entropy,
    clear_sums,
)
from umpc.crypto.zero_shares import KeyAgreement, zero_shares
from umpc.testing import lying

SHAPES = {
    "kendall": {"kernels": KENDALL},
    "gini": {"kernels": GINI},
    "sum": {"kernels": "a.x + b.x"},
    "product": {"kernels": "a.x * b.x"},
    "three products": {"kernels": TRIPLE, "degree": 3},
    "three owners": {"kernels": SKEWNESS, "degree": 3},
    "two sums": {"kernels": (KENDALL, GINI), "estimator": "ratio"},
    "three sums": {"kernels": (SPEARMAN, TRIPLE, "1"), "degree": 3, "estimator": "geometric_ratio"},
    "two samples": {"kernels": AUC, "sampling": "two_sample"},
    "one record": {"kernels": "a.x * a.y", "degree": 1},
}


@pytest.mark.parametrize("counts", [(3, 4), (5,), (2, 0, 3), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_shares_are_parts_of_the_sums_plus_noise_plus_zero_shares(shape, counts):
    """Each sum's own: its noise, its zero share, all replayed from the node's randomness."""
    label = f"share {shape}"
    run = Run(counts, label, **SHAPES[shape]).agree().begin().seed().fields().evaluate()
    attempt, sums = run.attempt, len(run.study.kernels)
    ring, noises = attempt.ring, noise_of(attempt.sizes)
    masked, plain = [0] * sums, [0] * sums
    for index, node in enumerate(run.nodes):
        replay = Entropy(f"{label} {index}")
        replay(32)
        key = KeyAgreement(replay(32))
        drawn = [
            noise.draw(
                lambda bits, r=replay: int.from_bytes(r((bits + 7) // 8), "little") >> (-bits % 8)
            )
            for noise in noises
        ]
        names, keys = [m.name for m in run.members], [m.public_key for m in run.members]
        zeros = zero_shares(index, names, keys, key, attempt.id, ring, sums)
        share = node.release().share
        assert len(share) == sums * ring.bytes
        for number in range(sums):
            part = int.from_bytes(share[number * ring.bytes : (number + 1) * ring.bytes], "little")
            masked[number] += part
            plain[number] += part - drawn[number] - zeros[number]
    exact = clear_sums(run.study, run.tables, attempt.hypergraph)
    assert [ring.decode(total) for total in plain] == exact
    noise = [ring.decode(total) - of for total, of in zip(masked, exact, strict=True)]
    assert all(abs(of) <= law.tail_bound() for of, law in zip(noise, noises, strict=True))


def test_results_added_from_another_thread_are_all_counted():
    """`add` runs on the event loop while the worker adds up the edges inside the node: no update
    may be lost.
    """
    run = Run((4, 5)).agree().begin().seed().fields()
    node = run.nodes[0]
    before = len(node.parts)
    chunk = next(run.attempt.chunks())

    def meanwhile(honest, kernel, records):
        node.add(chunk, [1000])
        return honest(kernel, records)

    with lying("everybody", evaluate=meanwhile):
        run_own_steps(node)
    inner = clear_sums(
        run.study, [run.tables[0]], Run((4,), kernels=KENDALL).agree().begin().attempt.hypergraph
    )
    assert sorted(node.parts[before:]) == sorted([[1000], [inner[0] % 2**64]])
