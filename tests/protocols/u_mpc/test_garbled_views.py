"""The laws of the garbler's and the evaluator's views do not depend on the other's records.

Whole studies in memory, REPEATED for each of two data sets: node-0 garbles, node-1 evaluates, each
has RECORDS equal records of two bits. Each record has labels of its own and stands in an edge of
its own (i, i), so that many samples come from one run. The base transfers are those of
`garbled.without_points`; what they hide is tested in `mpc/transfers/test_base_ot.py`. Here the
extension, labels, tables, elements and shares are looked at, alone and jointly.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.garbled import garbled_study, without_points
from tests.support.limits import no_mask_of_choices
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.studies import KENDALL, Entropy, table
from tests.support.transfers import extension_rows
from umpc.mpc.garbled.circuits import outputs_of
from umpc.mpc.garbled.gates import GateHash
from umpc.simulation import Simulated, simulate
from umpc.testing import lying


@pytest.fixture(autouse=True, scope="module")
def fast():
    with without_points():
        yield


RECORDS = 8
REPEATED = 64
"""RECORDS × REPEATED samples per data set; of shares, which are sums over all edges, REPEATED."""
DATA = (table([0] * RECORDS, [1] * RECORDS), table([1] * RECORDS, [0] * RECORDS))
"""The observed node's records in either data set."""
OTHER = table([1] * RECORDS, [1] * RECORDS)
UNIFORM = {
    0: {"extension": 16, "own share": 4},
    1: {"labels": 16, "tables": 16, "elements": 16, "own share": 4},
}
"""Further parts of a view that must be uniform, and their numbers of categories."""


def observe(run: Simulated, observer: int) -> dict[str, np.ndarray]:
    """Small categories of what a node sees, per record or edge (i, i), and of the share that it
    computes from it.
    """
    frames = {
        frame.step: np.frombuffer(frame.payload, np.uint8) for *_, frame in run.transcript.online
    }
    share = np.array([run.nodes[observer].parts[-1][0] & 3])
    if observer == 0:
        sent = extension_rows(frames["ot_extend"].tobytes(), 2 * RECORDS)
        rows = np.unpackbits(sent, axis=1, bitorder="little").reshape(32, 2, RECORDS)
        first = rows[0, 0] | rows[0, 1] << 1
        return {
            "extension": first | rows[1, 0] << 2 | rows[1, 1] << 3,
            "extension, first and last row": first | rows[-1, 0] << 2 | rows[-1, 1] << 3,
            "own share": share,
        }
    edges = run.attempt.hypergraph.cells[0, 1].edges(0, RECORDS**2)
    own = np.flatnonzero(edges[0] == edges[1])
    labels = frames["labels"].reshape(2, RECORDS, 16)
    colors = (labels[..., 0] & 1)[0] | (labels[..., 0] & 1)[1] << 1
    halves = 2 * outputs_of(run.attempt.program.circuit).and_count
    tables = frames["garbled"][: 16 * halves * RECORDS**2].reshape(halves, RECORDS**2, 16)[:, own]
    elements = frames["garbled"][-4 * RECORDS**2 :].reshape(RECORDS**2, 4)[own]
    return {
        "labels": colors | (labels[0, :, 8] & 3) << 2,
        "labels, high": labels[1, :, 15] & 15,
        "tables": tables[0, :, 0] & 15,
        "tables and labels": colors | (tables[0, :, 0] & 1) << 2 | (tables[1, :, 0] & 1) << 3,
        "elements": elements[:, 0] & 15,
        "elements and labels": colors | (elements[:, 0] & 3) << 2,
        "own share": share,
    }


def views(observer: int, seed: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """REPEATED studies over either data set of the other node: per name the two samples."""
    study = garbled_study(KENDALL, 2, x=("0", "1"), y=("0", "1"))
    samples = []
    for number, theirs in enumerate(DATA):
        entropy, tables = (
            Entropy(f"{seed} {observer} {number}"),
            [theirs, OTHER][:: -1 if observer == 0 else 1],
        )
        samples.append(
            [observe(simulate(study, tables, entropy), observer) for _ in range(REPEATED)]
        )
    return {
        name: tuple(np.concatenate([s[name] for s in sample]) for sample in samples)
        for name in samples[0][0]
    }


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("observer", [0, 1])
def test_what_a_node_sees_does_not_depend_on_the_others_records(observer):
    found = views(observer, "garbled views")
    for name, pair in found.items():
        p = homogeneity(*pair)
        assert p > ALPHA, (
            f"{name} tells the data sets apart: p = {p:.1e}, N = {len(pair[0])} each, "
            f"node-{observer}"
        )
    for name, categories in UNIFORM[observer].items():
        p = min(uniformity(sample, categories) for sample in found[name])
        assert p > ALPHA, (
            f"{name} is not uniform: p = {p:.1e}, N = {len(found[name][0])} each, node-{observer}"
        )


# --- power: the same test finds every protection that is left out
# -------------------------------------------


class NoHash(GateHash):
    """π is 0: a hash is its tweak, and nothing is a pad."""

    def permute(self, blocks: np.ndarray) -> np.ndarray:
        return np.zeros_like(blocks)


def no_labels():
    """All labels of bit 0 are 0."""
    return lying("node", fresh_labels=lambda _, seed, count: np.zeros((count, 2), np.uint64))


def no_hash():
    """In numpy only: the compiled kernel takes the key and has a π of its own."""
    return lying("node", GateHash=lambda honest, key: NoHash(key))


@pytest.mark.parametrize(
    ("mutate", "observer", "finder"),
    [
        (no_labels, 1, "labels"),
        (no_hash, 1, "tables and labels"),
        (no_mask_of_choices, 0, "extension"),
    ],
)
def test_power_a_protection_left_out_is_found(request, mutate, observer, finder):
    if mutate is no_hash:
        request.getfixturevalue("in_numpy")
    with mutate():
        p = homogeneity(*views(observer, "power")[finder])
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}"
