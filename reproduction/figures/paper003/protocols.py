"""One run of each protocol on a table: the squared error towards the U-statistic of all pairs.

A run draws the numbers that the protocol releases. Where their law is known exactly, the run draws
from the law, and this list names the test that proves the law.

- `umpc`: E from a joint seed, the kernel on E in the clear, discrete Laplace noise on the integer
  sum. Shares add up to the clear sum (tests/protocols/u_mpc/test_library.py,
  tests/mpc/test_edges.py), and a committee's noise has this law up to 2^-57
  (tests/dp/test_committee.py).
- `bell-ldp`, `ghazi-ldp`: all messages and the aggregation.
- `ghazi-shuffle`: the histogram plus the noise of n records of which n/2 are honest. Split and mix
  adds up exactly. The noise is a sum of Polya shares of shape 2
  (tests/umpc_papers/ghazi_shuffle/test_mechanism.py), hence of two discrete Laplace draws.
- `bell-2pc`: one pairing of all records, each pair's value with discrete Laplace noise. The coins
  are within 2^-40 of that (tests/umpc_papers/bell_2pc/test_noise.py). The sum of m of these is a
  difference of two sums of m geometric numbers, which are negative binomial. numpy draws them from
  the run's seed.
- `central`: a trusted curator's discrete Laplace noise on the sum over all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import expm1
from typing import Any

import numpy as np

from reproduction.baselines.coins import sample_discrete_laplace
from reproduction.figures.draws import bits_of, stream_of
from reproduction.figures.figure import Point
from reproduction.figures.paper003.data import Data, load, pair_values
from reproduction.figures.paper003.theory import Moments, moments
from umpc.dp.calibration import DiscreteLaplace
from umpc.dp.polya import sample_polyas
from umpc.ustat.sampling import balanced, matchings, max_degree
from umpc_papers.bell_2pc.pair_mechanisms import PairLaplace
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.ghazi_shuffle.mechanism import GhaziShuffle
from umpc_papers.local.bell_ldp import BellLdp
from umpc_papers.local.ghazi_ldp import GhaziLdp

Facts = Mapping[str, Any]
EDGES_PER_RECORD = 2
"""|E| = 2n, as in the paper."""


def squared_errors(point: Point, seed: bytes) -> list[float]:
    """The squared errors of a batch's runs."""
    facts = point.facts
    estimate = ESTIMATES[facts["protocol"]]
    data, exact = load(facts["data"], facts["n"]), moments(facts["data"], facts["n"])
    unit = float(data.kernel.unit)
    runs = (
        estimate(data, exact, facts, stream_of(seed, run).bytes(32)) for run in range(facts["runs"])
    )
    return [(value - exact.mean * unit) ** 2 for value in runs]


def predicted_error(point: Point) -> float:
    """The mean of `squared_errors`."""
    facts = point.facts
    data, exact = load(facts["data"], facts["n"]), moments(facts["data"], facts["n"])
    return PREDICTIONS[facts["protocol"]](data, exact, facts)


def epsilon_of(facts: Facts) -> Fraction:
    return Fraction(facts["epsilon"])


def edges_of(data: Data) -> int:
    return min(EDGES_PER_RECORD * data.records, data.records * (data.records - 1) // 2)


# --- the protocol of the paper, and a curator ---


def umpc(data: Data, exact: Moments, facts: Facts, seed: bytes) -> float:
    count = edges_of(data)
    edges = balanced(data.records, count, stream_of(seed, "edges").words)
    noise = sample_discrete_laplace(_umpc_ratio(data, facts), bits_of(seed, "noise"))
    return float((int(pair_values(data, edges).sum()) + noise) * data.kernel.unit / count)


def _umpc_ratio(data: Data, facts: Facts) -> Fraction:
    """ε over the sensitivity of the sum, in units."""
    return epsilon_of(facts) / (
        max_degree(edges_of(data), data.records) * data.kernel.sensitivity_units
    )


def umpc_error(data: Data, exact: Moments, facts: Facts) -> float:
    noise = DiscreteLaplace(_umpc_ratio(data, facts)).variance / edges_of(data) ** 2
    return (exact.of_balanced(edges_of(data)) + noise) * float(data.kernel.unit) ** 2


def central(data: Data, exact: Moments, facts: Facts, seed: bytes) -> float:
    n = data.records
    curator = GlobalSensitivity(data.kernel, epsilon_of(facts))
    noise = sample_discrete_laplace(
        curator.epsilon / curator.sensitivity(n), bits_of(seed, "noise")
    )
    return (exact.mean + noise / (n * (n - 1) / 2)) * float(data.kernel.unit)


def central_error(data: Data, exact: Moments, facts: Facts) -> float:
    return GlobalSensitivity(data.kernel, epsilon_of(facts)).noise_variance(data.records)


# --- the local protocols ---


@lru_cache(maxsize=8)
def bell_protocol(name: str, n: int, t: int, epsilon: str) -> BellLdp:
    return BellLdp(Fraction(epsilon), load(name, n).cells(t))


@lru_cache(maxsize=8)
def ghazi_protocol(name: str, n: int, t: int, epsilon: str) -> GhaziLdp:
    return GhaziLdp(Fraction(epsilon), load(name, n).cells(t))


@lru_cache(maxsize=8)
def shuffle_protocol(name: str, n: int, t: int, epsilon: str) -> GhaziShuffle:
    """The shuffled protocol, where half of the records' owners may collude with the coordinator."""
    return GhaziShuffle(Fraction(epsilon), load(name, n).cells(t), n, n - n // 2)


def protocol_of(facts: Facts) -> BellLdp | GhaziLdp | GhaziShuffle:
    make = {
        "bell-ldp": bell_protocol,
        "ghazi-ldp": ghazi_protocol,
        "ghazi-shuffle": shuffle_protocol,
    }
    return make[facts["protocol"]](facts["data"], facts["n"], facts["t"], facts["epsilon"])


def local(data: Data, exact: Moments, facts: Facts, seed: bytes) -> float:
    protocol = protocol_of(facts)
    message = protocol.randomise(data.columns, bits_of(seed, "answers"))
    return protocol.aggregate([message], [data.records]).value


def shuffled(data: Data, exact: Moments, facts: Facts, seed: bytes) -> float:
    protocol = protocol_of(facts)
    _, histogram = protocol.cells.laws(data.columns)
    bits, ratio = bits_of(seed, "noise"), protocol.noise.log_ratio
    shape = Fraction(protocol.records, protocol.honest)
    noise = [_noise_of_records(shape, ratio, bits) for _ in histogram]
    return histogram_estimate(protocol, histogram + np.array(noise, dtype=np.float64))


def _noise_of_records(shape: Fraction, ratio: Fraction, bits) -> int:
    """A draw of Polya(shape) − Polya(shape).

    For a whole shape it is a sum of that many discrete Laplace draws, which is faster.
    """
    if shape.denominator == 1:
        return sum(sample_discrete_laplace(ratio, bits) for _ in range(int(shape)))
    return sample_polyas(shape, ratio, 1, bits)[0] - sample_polyas(shape, ratio, 1, bits)[0]


def histogram_estimate(protocol: GhaziShuffle, total: np.ndarray) -> float:
    """The estimate of `GhaziShuffle.aggregate` from noisy sums, without their heaps.

    tests/reproduction/figures/test_figures_003.py holds the two equal.
    """
    embedding, n = protocol.embedding, protocol.records
    value = total @ embedding.form @ total - protocol.noise.variance * np.trace(embedding.form)
    return float(value - embedding.single @ total - n * embedding.constant) / (n * (n - 1))


def local_error(data: Data, exact: Moments, facts: Facts) -> float:
    return protocol_of(facts).predicted_mse(data.columns, exact.mean * float(data.kernel.unit))


# --- noisy pairs between two parties ---


def noisy_pairs(data: Data, exact: Moments, facts: Facts, seed: bytes) -> float:
    edges = matchings(data.records, 1, stream_of(seed, "edges").words)
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint64))
    success = -expm1(-float(_pair_law(data, facts).coins.log_ratio))
    up, down = map(int, rng.negative_binomial(len(edges), success, 2))
    return float((int(pair_values(data, edges).sum()) + up - down) * data.kernel.unit / len(edges))


def _pair_law(data: Data, facts: Facts) -> PairLaplace:
    epsilon = epsilon_of(facts)
    return PairLaplace(epsilon, data.kernel.sensitivity_units, data.records // 2, 1, epsilon)


def noisy_pairs_error(data: Data, exact: Moments, facts: Facts) -> float:
    pairs = data.records // 2
    noise = _pair_law(data, facts).std ** 2 / pairs**2
    return (exact.of_graph(pairs, 0) + noise) * float(data.kernel.unit) ** 2


ESTIMATES: dict[str, Callable[[Data, Moments, Facts, bytes], float]] = {
    "umpc": umpc,
    "central": central,
    "bell-ldp": local,
    "ghazi-ldp": local,
    "ghazi-shuffle": shuffled,
    "bell-2pc": noisy_pairs,
}
PREDICTIONS: dict[str, Callable[[Data, Moments, Facts], float]] = {
    "umpc": umpc_error,
    "central": central_error,
    "bell-ldp": local_error,
    "ghazi-ldp": local_error,
    "ghazi-shuffle": local_error,
    "bell-2pc": noisy_pairs_error,
}
