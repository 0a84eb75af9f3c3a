"""The noise of a committee: a dealer that silences it, and a member that flips its share."""

from __future__ import annotations

import pytest

from tests.attacks.parties import lying_dealer
from tests.attacks.simulated import first_node_lies
from tests.support.studies import Entropy, clear_sums, graph_of, make_study, random_tables
from umpc.errors import ImpossibleResult, RemoteProtocolError, UmpcError
from umpc.simulation import simulate
from umpc.study.report import Report

LINE = "a dealer that follows nothing makes the in-MPC noise 0"
RUNS = 6


def noise_of(study, label: str) -> int:
    """The noise that a simulated study of Kendall's tau released, in units."""
    tables = random_tables([4, 4], label)
    report = simulate(study, tables, Entropy(label)).report
    (exact,) = clear_sums(study, tables, graph_of(study, report))
    return round(report.estimate * report.edges) - exact


@pytest.mark.attack(LINE, "honest", "bounded: the dealer deals no coins, unless asked to")
def test_rows_of_zeros_do_not_silence_the_noise():
    """This dealer finds no lie to tell, for it deals nothing that a coin depends on."""
    study = make_study(nodes=2, noise="in_mpc", epsilon="1/8", name="silent-coins")
    with lying_dealer():
        drawn = [noise_of(study, f"silent {run}") for run in range(RUNS)]
    # under the law, [noise = 0] has a probability below 1/200
    assert drawn.count(0) < RUNS // 2, drawn


@pytest.mark.attack(LINE, "honest", 'outside: coins = "dealt" trusts the dealer')
@pytest.mark.lies("silent")
def test_rows_of_zeros_silence_coins_that_are_dealt():
    """The power of the test above: without its defence, this dealer's lie leaves no noise."""
    study = make_study(nodes=2, noise="in_mpc", epsilon="1/8", coins="dealt", name="silent-dealt")
    assert any(noise_of(study, f"honest {run}") for run in range(RUNS))
    with lying_dealer():
        assert not any(noise_of(study, f"silent {run}") for run in range(RUNS))


@pytest.mark.attack(
    "a committee member flips one opened coin share", "honest", "outside the promise"
)
@pytest.mark.lies("coin")
def test_flipped_coins_give_a_possible_number_or_none(liars):
    """The noise is then another one, so ε does not hold: the grade's sentence excludes it."""
    ended = liars.attempt(name="coin-honest", noise="in_mpc", epsilon="1")
    assert isinstance(ended, Report | ImpossibleResult | RemoteProtocolError), ended


@pytest.mark.attack(
    "a committee member tests bits of Δ in its choices", "honest", "noticed, and named"
)
@pytest.mark.lies("choose")
def test_choices_that_do_not_fit_together_end_the_study_before_the_data(liars):
    """The member is named, and nobody is charged."""
    ended = liars.attempt(name="choose-coins", noise="in_mpc", epsilon="1")
    assert isinstance(ended, RemoteProtocolError), ended
    assert ended.culprit == "node-3" and "do not fit together" in ended.message
    assert "no epsilon" in ended.message
    assert not any(liars.charged(name, "choose-coins") for name in liars.names)


@pytest.mark.lies("coin")
def test_flipped_coins_change_the_noise():
    """The power of the test above."""
    study = make_study(nodes=2, noise="in_mpc", epsilon="1/8", name="coin-changes")
    honest = noise_of(study, "coins")
    with first_node_lies():
        assert noise_of(study, "coins") != honest


@pytest.mark.lies("coin")
def test_flipped_coins_that_were_dealt_give_no_number():
    """The liar's share does not fit the others' then: a random number of the ring comes out."""
    study = make_study(nodes=2, noise="in_mpc", epsilon="1/8", coins="dealt", name="coin-dealt")
    with first_node_lies(), pytest.raises(ImpossibleResult):
        noise_of(study, "dealt")


@pytest.mark.attack("a committee member flips one opened coin share", "lying_nodes", "refused")
@pytest.mark.parametrize("noise", ["in_mpc", "binomial"])
def test_noise_of_a_committee_is_refused_where_nodes_lie(noise):
    from umpc.protocols.registry import checked

    delta = {"delta": "1e-6"} if noise == "binomial" else {}
    study = make_study(nodes=3, noise=noise, max_colluding=2, **delta)
    with pytest.raises(UmpcError, match="distributed"):
        checked(study.replaced(adversary="lying_nodes"))
