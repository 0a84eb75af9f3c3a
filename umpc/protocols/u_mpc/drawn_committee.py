"""The noise that a drawn committee would add, where the usual noise is every node's own.

Beyond USUAL_COMMITTEE nodes each node adds noise by default, of which that of any honest ones
suffices: N/(N − t) times the variance of one draw. A committee draws once under shares, at a price
in bytes that a study's author may want to pay.
"""

from __future__ import annotations

from math import sqrt

from umpc.protocols.u_mpc.settings import MOST_EPSILON_IN_MPC, USUAL_COMMITTEE
from umpc.study.document import Study
from umpc.study.grades import HONEST


def with_committee(study: Study) -> Study | None:
    """The study with noise that a committee draws, where that is not usual; else None."""
    if study.noise != "distributed" or len(study.nodes) <= USUAL_COMMITTEE:
        return None
    if study.adversary != HONEST or study.exact_epsilon > MOST_EPSILON_IN_MPC:
        return None
    return study.replaced(noise="in_mpc")


def gain_of_committee(noise: str, nodes: int, max_colluding: int) -> str:
    """How much less noise a committee would add, in words; empty where that is the usual one."""
    honest = nodes - max_colluding
    if noise != "distributed" or nodes <= USUAL_COMMITTEE or honest >= nodes:
        return ""
    times = sqrt(nodes / honest)
    return (
        f'noise = "in_mpc" has 1/{times:.3g} of this noise\'s standard deviation; '
        f"`umpc plan` says at how many bytes"
    )
