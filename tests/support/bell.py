"""Shared by the tests of noisy pairs: studies, noisy values of a run, their law, fast channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from scipy import stats

from tests.support.garbled import garbled_study, without_points
from tests.support.protocols import noise_of
from tests.support.studies import Columns, by_class, remembering
from umpc.crypto.prg import Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, silence
from umpc.mpc.garbled.kernel_to_circuit import PairNoise
from umpc.mpc.transfers.correlated_ot import Blocks
from umpc.mpc.transfers.message_shapes import extend_shape, set_up_shapes
from umpc.simulation import Simulated
from umpc.study.document import Study
from umpc.testing import lying
from umpc.ustat.cell_rows import Owners
from umpc_papers.bell_2pc.pair_mechanisms import PairLaplace, PairResponse

EQUAL = "a.x == b.x"
"""The kernel has the values 0 and 1."""


def bell_study(kernels: str | Sequence[str] = EQUAL, nodes: int = 2, **changes) -> Study:
    """Return a study whose field x has the values 0 and 1, unless the changes say otherwise."""
    usual = {
        "protocol": "bell-2pc",
        "noise": "pair_laplace",
        "edges": "1p",
        "x": ("0", "1"),
        "y": ("0", "1"),
    }
    return garbled_study(kernels, nodes, **(usual | changes))


def noisy_values(run: Simulated) -> dict[Owners, np.ndarray]:
    """Return every pair's noisy value, in units, by cell: (sums, pairs) int64.

    Anybody who has all shares can compute these values.
    """
    found: dict[Owners, np.ndarray] = {}
    for owners, cell in run.attempt.hypergraph.cells.items():
        total = np.zeros((len(run.attempt.study.kernels), cell.count), dtype=run.attempt.ring.dtype)
        for node in set(owners):
            total += share_of(run, node, owners)
        found[owners] = signed(run, total)
    return found


def share_of(run: Simulated, node: int, owners: Owners) -> np.ndarray:
    """Return a node's released share of a cell's pairs, from the bytes that it sends.

    The array is (sums, pairs) of the ring.
    """
    ring, place = run.attempt.ring, 0
    released = np.frombuffer(run.transcript.shares[node], dtype=ring.dtype.newbyteorder("<"))
    rows = released.reshape(len(run.attempt.study.kernels), -1)
    for each, cell in run.attempt.cells_of(node).items():
        if each == owners:
            return rows[:, place : place + cell.count]
        place += cell.count
    raise KeyError(owners)


def signed(run: Simulated, values: np.ndarray) -> np.ndarray:
    return values.view(np.dtype(f"i{run.attempt.ring.bytes}")).astype(np.int64)


def clear_values(
    study: Study, tables: Sequence[Columns], run: Simulated
) -> dict[Owners, np.ndarray]:
    """Return every pair's value without noise, from the pooled tables: (sums, pairs) by cell."""
    tables, found = by_class(study, tables), {}
    for owners, cell in run.attempt.hypergraph.cells.items():
        rows = cell.edges(0, cell.count)
        records = [
            {k: c[r] for k, c in tables[n].items()} for n, r in zip(owners, rows, strict=True)
        ]
        found[owners] = np.stack([kernel.evaluate(records) for kernel in study.parsed_kernels])
    return found


def noise_by_place(
    study: Study, tables: Sequence[Columns], run: Simulated
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first sum's noise of pairs of two nodes, and of pairs inside one node."""
    noisy, clear, places = noisy_values(run), clear_values(study, tables, run), ([], [])
    for owners in noisy:
        places[len(set(owners)) == 1].append((noisy[owners] - clear[owners])[0])
    return tuple(np.concatenate([np.empty(0, dtype=np.int64), *rows]) for rows in places)


def pmf_of(law: PairLaplace | PairResponse) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return P(noisy value | value) as the papers write the law, without coins and thresholds."""
    if isinstance(law, PairLaplace):
        laplace = stats.dlaplace(float(law.epsilon / law.width))
        return lambda noisy, values: laplace.pmf(noisy - values)
    odds = np.exp(float(law.epsilon))
    inside = np.vectorize(lambda value: law.low <= value <= law.low + law.width)
    return lambda noisy, values: (
        inside(noisy) * np.where(noisy == values, odds, 1) / (odds + law.width)
    )


def law_p(noise: np.ndarray, log_ratio: float) -> float:
    """Return the p-value of discrete Laplace noise: chi-square in bins that expect at least 8."""
    law, cuts, before = stats.dlaplace(log_ratio), [], 0.0
    far = int(40 * law.std()) + 1
    for value, mass in zip(
        range(-far, far), law.cdf(np.arange(-far, far)) * len(noise), strict=True
    ):
        if mass - before >= 8 <= len(noise) - mass:
            cuts.append(value)
            before = mass
    expected = np.diff([0.0, *law.cdf(cuts), 1.0]) * len(noise)
    seen = np.bincount(np.searchsorted(cuts, noise, side="left"), minlength=len(expected))
    assert len(expected) > 1, "no power: one bin"
    return float(stats.chisquare(seen, expected).pvalue)


def laws_of(run: Simulated) -> tuple[PairLaplace | PairResponse, ...]:
    return noise_of(run.attempt.sizes)


def all_numbers(noise: PairNoise) -> np.ndarray:
    """Return every choice of a pair's random numbers once: (numbers, n) uint64."""
    grid = np.indices((1 << noise.bits,) * noise.numbers, dtype=np.uint64)
    return grid.reshape(noise.numbers, (1 << noise.bits) ** noise.numbers)


# --- fast: transfers that hide nothing

_DELTAS: dict[bytes, np.ndarray] = {}


class _Channel:
    """Both ends of a channel without secrets: t = q ⊕ r·Δ from public seeds, with a message of
    zeros.
    """

    def __init__(self, session: bytes):
        self.session, self._done = session, 0

    def fork(self, *labels: str | int, session: bytes = b"") -> _Channel:
        name = session or self.session
        fork = type(self)(digest(b"fork", name, *(str(label).encode() for label in labels)))
        _DELTAS.setdefault(fork.session, _DELTAS[self.session])
        return fork

    def _blocks(self, count: int) -> Blocks:
        self._done += 1
        words = Stream(derive(self.session, "batch", self._done)).words(2 * count)
        return Blocks(0, words.reshape(count, 2))


class _Receiver(_Channel):
    def extend(self, choices: np.ndarray) -> tuple[Blocks, Message]:
        q = self._blocks(len(choices))
        t = q.blocks ^ choices[:, None].astype(np.uint64) * _DELTAS[self.session]
        return Blocks(0, t), extend_shape(len(choices), self._done)


class _Sender(_Channel):
    peer = "its peer"

    @property
    def delta(self) -> np.ndarray:
        return _DELTAS[self.session]

    def extend(self, message: Message, count: int, turned: np.ndarray | None = None) -> Blocks:
        q = self._blocks(count)
        if turned is None:
            return q
        return Blocks(0, q.blocks ^ turned[:, None].astype(np.uint64) * self.delta)


def _open_sender(
    honest: Callable, seed: bytes, delta: np.ndarray, session: bytes, peer: str
) -> Protocol:
    _DELTAS[session] = delta
    for speaks, message in set_up_shapes():
        yield message if speaks else silence(message.step)
    return _Sender(session)


def _open_receiver(honest: Callable, seed: bytes, session: bytes, peer: str) -> Protocol:
    for speaks, message in set_up_shapes():
        yield silence(message.step) if speaks else message
    return _Receiver(session)


@contextmanager
def remembered() -> Iterator[None]:
    """Replace curve points in base transfers, and compute the thresholds of coins only once."""
    with without_points(), lying("everybody", **remembering("threshold_of")):
        yield


@contextmanager
def without_transfers() -> Iterator[None]:
    """Replace the channels by ones of the same shape and correlation that hide nothing.

    This is for tests that look only at released values.
    """
    ends = {"open_sender": _open_sender, "open_receiver": _open_receiver}
    with remembered(), lying("everybody", **ends):
        yield
        _DELTAS.clear()
