"""Kendall's tau of two fields, as a study of the benchmarks that run in one process."""

from __future__ import annotations

from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant


def kendall_study(nodes: int, most: int, epsilon: str, **settings: str) -> Study:
    """Return a study in which all other nodes may collude.

    Args: most: the greatest value of both fields; the least is 0. settings: those of U-MPC.
    """
    dealer = Participant("dealer", "dealer:1")
    return checked(
        Study(
            name="bench",
            statistic="kendall_tau",
            kernels=("sign(a.x - b.x) * sign(a.y - b.y)",),
            fields=tuple(FieldText(name, "0", str(most), whole=True) for name in "xy"),
            epsilon=epsilon,
            max_colluding=nodes - 1,
            coordinator="coordinator",
            nodes=tuple(Participant(f"node-{i}", f"node-{i}:1") for i in range(nodes)),
            settings=UMpcSettings(dealer=dealer, **settings),
        )
    )
