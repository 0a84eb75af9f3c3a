"""Bytes of a run, from the protocols' own cost functions. Tests compare these with measured bytes.

Each party has one record, as in the paper. An answer is a message of its own, and all four edges of
a party of `umpc` are with other parties (bench/simulated.py, which is compared with real processes;
more than 4,096 cannot run today, docs/scale.md). Only `bell-2pc` is between two parties, with half
of the records each. Online bytes are those sent on data.
"""

from __future__ import annotations

from functools import lru_cache

from bench.simulated import Simulated
from reproduction.figures.paper003 import protocols
from reproduction.figures.paper003.data import Data, load
from reproduction.figures.paper003.protocols import Facts
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.masked.material import dealt_bytes
from umpc.planning.prediction import attempt_over
from umpc.protocols.registry import checked, protocol_of
from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.study.document import Study
from umpc.study.messages import frame_bytes
from umpc.study.parts import Participant
from umpc.ustat.text import to_text
from umpc_papers.bell_2pc.settings import BellTwoPcSettings

SITES = 4
"""Sites for `bytes_at_sites`: four sites that share the records, the usual case of umpc."""


@lru_cache(maxsize=64)
def _bytes(protocol: str, name: str, n: int, t: int, epsilon: str) -> dict[str, float]:
    facts = {"protocol": protocol, "data": name, "n": n, "t": t, "epsilon": epsilon}
    if protocol == "umpc":
        sites = umpc_sites(load(name, n), epsilon)["bytes"]
        return umpc_parties(load(name, n), epsilon) | {"bytes_at_sites": sites}
    if protocol == "bell-2pc":
        return noisy_pairs(load(name, n), epsilon)
    if protocol == "central":
        return {}
    return {
        "bytes": float(protocols.protocol_of(facts).cost([1] * n).message_bytes),
        "bytes_offline": 0.0,
    }


def bytes_of(facts: Facts) -> dict[str, float]:
    """`bytes` online of all parties together, and `bytes_offline` before.

    A curator who has the data sends nothing.
    """
    return _bytes(facts["protocol"], facts["data"], facts["n"], facts.get("t", 0), facts["epsilon"])


def study_of(data: Data, nodes: int, epsilon: str, noise: str = "in_mpc") -> Study:
    """The paper's study.

    |E| = 2n. Half of the nodes may collude (M_HF). Unless told otherwise, a committee draws the
    noise, of coins that the dealer deals.
    """
    dealer = Participant("dealer", "dealer.example.org:7100")
    coins = "dealt" if noise == "in_mpc" else "transfers"
    return Study(
        name="figure",
        statistic=data.statistic,
        kernels=(to_text(data.kernel.expression),),
        fields=data.fields,
        epsilon=epsilon,
        max_colluding=nodes // 2,
        coordinator="coordinator",
        nodes=tuple(Participant(f"node-{i}", f"node-{i}.example.org:7100") for i in range(nodes)),
        settings=UMpcSettings(noise=noise, coins=coins, edges="2n", dealer=dealer),
    )


def umpc_parties(data: Data, epsilon: str) -> dict[str, float]:
    """Bytes where each party has one record."""
    run = Simulated(study_of(data, data.records, epsilon), 1)
    offline = int(run.dealt.sum()) + noise_bytes(run.attempt)
    return {"bytes": float(run.sent.sum()), "bytes_offline": float(offline)}


def noise_bytes(attempt: SharedAttempt) -> int:
    """Bytes of a committee's coins, as in `umpc.mpc.backends`: dealt, and sent between members."""
    plan, total = attempt.noise_plan, 0
    for chunk in attempt.noise_chunks:
        for party in plan.everybody:
            width = plan.dealt_bits(party)
            total += frame_bytes(
                "material",
                (),
                chunk.number,
                chunk.count,
                width,
                dealt_bytes(plan, party, chunk.count),
            )
            for number in range(1, plan.rounds + 1):
                shape = plan.shape(number, party, chunk.count)
                size = len(shape.payload)
                frame = frame_bytes(
                    shape.step, (), chunk.number, shape.count, shape.width, size, shape.round
                )
                total += (plan.parties - 1) * frame * bool(shape.width)
    return total


def umpc_sites(data: Data, epsilon: str) -> dict[str, float]:
    """Bytes with the records at SITES nodes, where pairs inside a node cost nothing."""
    return _predicted(study_of(data, SITES, epsilon), data.records)


def noisy_pairs(data: Data, epsilon: str) -> dict[str, float]:
    """Bytes of two parties with half of the records each, as in Bell et al. 2020."""
    settings = BellTwoPcSettings(noise="pair_laplace", edges="1p")
    return _predicted(study_of(data, 2, epsilon).replaced(settings=settings), data.records)


def _predicted(study: Study, records: int) -> dict[str, float]:
    nodes = len(study.nodes)
    shares = [records * (i + 1) // nodes - records * i // nodes for i in range(nodes)]
    attempt = attempt_over(checked(study), ",".join(map(str, shares)))
    cost = protocol_of(study).cost(attempt)
    return {"bytes": float(cost.bytes_online), "bytes_offline": float(cost.bytes_offline)}
