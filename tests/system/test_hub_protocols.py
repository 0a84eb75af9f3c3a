"""Every protocol through a hub: without noise, its value is the one in the clear.

Tests of the protocols themselves find this value over direct links.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from tests.system.conftest import SHUFFLERS, Lab
from tests.system.test_central import value
from umpc.coordinator.client import run_study
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.registry import PROTOCOLS
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.transport.addresses import parse_hub
from umpc.transport.hub.connection import ask_status
from umpc.transport.identity import Identity

RECORDS = 30
"""Records of each of the two nodes."""
ROWS = [((7 * i) % 50, (13 * i) % 90 - 20.5) for i in range(2 * RECORDS)]
EVERY = {"edges": "all", "noise": "distributed", "max_colluding": 0}
ALONE = {"dealer": None, "preprocessing": "none"}
EXACT: dict[str, dict[str, Any]] = {
    "pairs": EVERY,
    "grid": EVERY | {"backend": "grid"},
    "central": {"dealer": None, "edges": None},
    "pairs without a dealer": EVERY | ALONE | {"backend": "garbled"},
    "grid without a dealer": EVERY | ALONE | {"backend": "grid"},
}
"""Studies whose value is that of all pairs."""
FINE = {"age": ["15", "32"], "balance": ["15", "40"]}
CELLS = {"dealer": None, "edges": None, "bins": {"age": ["25"], "balance": ["25"]}}
DRAWN: dict[str, dict[str, Any]] = {
    "ghazi-ldp": CELLS,
    "ghazi-rounds": CELLS,
    "ghazi-shuffle": CELLS | {"epsilon": "5"},
}
"""Studies of cells whose value is drawn, whatever epsilon is: near that of the cells."""
MEAN = {"dealer": None, "edges": None, "statistic": "mean", "columns": ["balance"]}
MEANS: dict[str, dict[str, Any]] = {
    "local-mean": MEAN,
    "gopa": MEAN | {"delta": "1e-10", "max_colluding": 1},
}
"""Studies whose value is drawn near the mean."""
FAR = 6
"""Standard deviations of what is drawn."""
RULES = "[policy]\nmin_colluding = 0\ntrusted_curator = true\n"
BUDGET = "9" + "0" * 12


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Provide two nodes, a dealer and two shufflers that dial a hub."""
    lab = Lab(tmp_path_factory.mktemp("lab"), 2)
    try:
        lab.served["hub"] = lab.deployment.start_hub()
        lab.start(BUDGET, RULES, shufflers=True)
        for place, name in enumerate(lab.names):
            rows = ROWS[place * RECORDS : (place + 1) * RECORDS]
            lines = ["age,balance", *(f"{age},{balance}" for age, balance in rows)]
            lab.table(name).write_text("\n".join(lines) + "\n")
        yield lab
    finally:
        lab.stop()


def lead(lab: Lab, name: str, changes: dict[str, Any]) -> Report:
    """Run one of the studies."""
    protocol: dict[str, Any] = {"protocol": name} if name in PROTOCOLS else {}
    if name == "ghazi-shuffle":
        protocol["shufflers"] = [(each, lab.served[each].address) for each in SHUFFLERS]
    return lab.lead(run_study, **{"epsilon": "1e9", "name": name} | changes | protocol)


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def of_cells(cuts: dict[str, list[str]]) -> float:
    """Kendall's tau where a record is no more than its cell."""
    ages, balances = ([float(cut) for cut in cuts[name]] for name in ("age", "balance"))
    cells = [(bisect_right(ages, age), bisect_right(balances, each)) for age, each in ROWS]
    pairs = list(combinations(cells, 2))
    return sum(sign(a[0] - b[0]) * sign(a[1] - b[1]) for a, b in pairs) / len(pairs)


def test_every_protocol_gives_its_value_through_a_hub(behind):
    tau, mean = value(behind), sum(balance for _, balance in ROWS) / len(ROWS)
    for name, changes in EXACT.items():
        assert lead(behind, name, changes).estimate == pytest.approx(tau, abs=1e-6), name
    hajek = {"edges": None, "delta": "1e-10", "bins": FINE}
    assert lead(behind, "hajek-grid", hajek).estimate == pytest.approx(of_cells(FINE), abs=1e-6)
    binned = lead(behind, "bell-ldp", CELLS).estimate
    for near, studies in ((binned, DRAWN), (mean, MEANS)):
        for name, changes in studies.items():
            found = lead(behind, name, changes)
            assert abs(found.estimate - near) < FAR * found.noise_std < 15, name
    pairing = {"dealer": None, "edges": "2p", "noise": "randomised_response"}
    found = lead(behind, "bell-2pc", pairing)
    assert abs(found.estimate - tau) < FAR * found.sampling_std_bound < 1
    check_status_and_notes(behind)
    assert behind.loud_lines() == []


def check_status_and_notes(lab: Lab) -> None:
    """Check what `umpc hub status` shows, and the notes of a run."""
    seen: set[tuple[str, str, int, int]] = set()

    async def noted(study: Study, identity: Identity) -> pb.HubStatusReply:
        await run_study(study, identity, note=lambda *note: seen.add(note))
        return await ask_status(identity, parse_hub(lab.deployment.hub), 30)

    reply = lab.lead(noted, **{"epsilon": "1", "name": "noted"} | EXACT["grid"])
    steps = ("connect", "propose", "agree", "prepare", "evaluate", "release")
    assert {(name, step, 1, 1) for name in lab.names for step in steps} <= seen
    listens = {(seat.role, seat.name) for seat in reply.seats if seat.listens}
    shufflers = {("shuffler", name) for name in SHUFFLERS}
    assert listens == {("node", name) for name in lab.names} | {("dealer", "dealer")} | shufflers
    assert all(seat.sent and seat.relayed and seat.silent < 60 for seat in reply.seats)
    assert 0 < reply.memory <= reply.most_memory < 200 << 20 and reply.waiting < 1 << 20
