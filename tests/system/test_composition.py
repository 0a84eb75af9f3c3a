"""Nodes with `composition = "zcdp"` over real processes: studies cost less than their ε."""

from __future__ import annotations

import json
from fractions import Fraction

from click.testing import CliRunner

from tests.support.node_ledgers import beside
from tests.system.test_gopa import RULES, STUDY
from umpc.cli.budget import budget
from umpc.dp.composition import ZCDP, Composition, concentrated_epsilon
from umpc.dp.events import ConcentratedEvent, LaplaceEvent

DELTA = Fraction(1, 10**9)
CLOSER = 'composition = "zcdp"\ncomposition_delta = "1e-9"\n'
MEAN = {
    **STUDY,
    **{
        "protocol": "u-mpc",
        "backend": "garbled",
        "preprocessing": "none",
        "noise": "distributed",
        "delta": None,
    },
}


def test_nodes_charge_the_mechanisms_and_not_the_sum_of_epsilons(lab):
    here = lab(3).start(dealer=False, more=CLOSER + RULES)
    runs = [here.run(**STUDY), here.run(**STUDY, name="other"), here.run(**MEAN, name="third")]
    assert [outcome.code for outcome in runs] == [0, 0, 0], [run.error for run in runs]
    for name in here.names:
        mechanisms = list(beside(here, name).account.mechanisms.values())
        assert len(mechanisms) == 3
        rhos = {event.rho for (event,) in mechanisms if isinstance(event, ConcentratedEvent)}
        assert len(rhos) == 1 and 0 < rhos.pop() < Fraction(1, 40)
        ((laplace,),) = [each for each in mechanisms if isinstance(each[0], LaplaceEvent)]
        assert laplace.epsilon == 1
        options = ["show", "--config", str(here.folder / f"{name}.toml"), "--format", "json"]
        found = CliRunner().invoke(budget, options, catch_exceptions=False)
        shown = json.loads(found.stdout)
        assert (shown["composition"], shown["composition_delta"]) == (ZCDP, str(DELTA))
        rule = Composition(ZCDP, DELTA)
        rho = sum(rule.weigh(Fraction(1), Fraction(0), events).rho for events in mechanisms)
        assert Fraction(shown["epsilon"]["spent"]) == concentrated_epsilon(rho, DELTA)
        assert Fraction(shown["delta"]["spent"]) == 0
        laws = sorted(study["mechanism"].split()[0] for study in shown["studies"])
        assert laws == ["laplace", "zcdp", "zcdp"]
