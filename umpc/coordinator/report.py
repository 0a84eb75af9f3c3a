"""The result of a study: the estimate, its error, its price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from math import comb, sqrt

from umpc.agreement import noise_of
from umpc.mpc.attempt import Attempt, Sizes
from umpc.mpc.cost import predict
from umpc.mpc.ring import Ring
from umpc.study import Study


@dataclass(frozen=True)
class Measured:
    """What the run cost, as the processes counted it."""

    rounds: int = 0
    bytes_online: int = 0
    bytes_offline: int = 0
    seconds_online: float = 0.0
    seconds_offline: float = 0.0
    seconds_total: float = 0.0
    replayed: bool = False


@dataclass(frozen=True)
class Report:
    """One object for programs and for the table.

    estimate: mean of the kernel over E plus noise. noise_std: its standard deviation from the noise, in the estimate's
    unit. sampling_std_bound: an upper bound of the standard deviation from taking E instead of all sets
    (Sinh & Ramon 2025, D.1: E_inc). epsilon is against replacing one record. replayed: stored shares of an earlier run.
    joint_seed and records_by_node: what E follows from, for whoever checks it.
    """

    study: str
    statistic: str
    estimate: float
    epsilon: float
    delta: float
    edges: int
    max_degree: int
    noise_std: float
    sampling_std_bound: float
    records: int
    nodes: int
    max_colluding: int
    rounds: int
    rounds_predicted: int
    bytes_online: int
    bytes_online_predicted: int
    bytes_offline: int
    bytes_offline_predicted: int
    seconds_online: float
    seconds_offline: float
    seconds_total: float
    replayed: bool
    study_hash: str
    joint_seed: str
    records_by_node: list[int]

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> Report:
        return cls(**{field.name: values[field.name] for field in fields(cls)})


def build_report(study: Study, shares: Sequence[bytes], run: Attempt | Sizes, measured: Measured) -> Report:
    """Add up the shares and say what the number means. `run` is the attempt, or for a replay just the sizes."""
    sizes = run.sizes if isinstance(run, Attempt) else run
    cost = predict(run) if isinstance(run, Attempt) else None
    kernel = study.parsed_kernel
    estimate = Fraction(noisy_sum(shares)) * kernel.unit / sizes.edges
    noise = noise_of(sizes)
    return Report(
        study=study.name,
        statistic=study.statistic,
        estimate=float(estimate),
        epsilon=float(study.exact_epsilon),
        delta=0.0,
        edges=sizes.edges,
        max_degree=sizes.max_degree,
        noise_std=noise.std * float(kernel.unit) / sizes.edges,
        sampling_std_bound=_sampling_bound(float(kernel.interval.width), sizes),
        records=sizes.records,
        nodes=len(study.nodes),
        max_colluding=study.max_colluding,
        rounds_predicted=cost.rounds if cost else 0,
        bytes_online_predicted=cost.bytes_online if cost else 0,
        bytes_offline_predicted=cost.bytes_offline if cost else 0,
        study_hash=study.hash.hex(),
        joint_seed=run.seed.hex() if isinstance(run, Attempt) else "",
        records_by_node=[member.records for member in run.members] if isinstance(run, Attempt) else [],
        **asdict(measured),
    )


def noisy_sum(shares: Sequence[bytes]) -> int:
    """Σ kernel over E plus noise, in units: the shares added in their ring, read as a signed integer."""
    ring = Ring(8 * len(shares[0]))
    return ring.decode(sum(int.from_bytes(share, "little") for share in shares))


def _sampling_bound(width: float, sizes: Sizes) -> float:
    """sqrt of E_inc ≤ (Δf)²·(C(n,k) − |E|) / (4|E|(C(n,k) − 1))."""
    total = comb(sizes.records, 2)
    if total <= 1:
        return 0.0
    return width * sqrt((total - sizes.edges) / (4 * sizes.edges * (total - 1)))
