"""Studies with a dealer whose committee tosses its coins by transfers: exact sums plus the coins'
sum, at the predicted cost, whatever the dealer deals.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import cycle

import numpy as np
import pytest

from tests.support.bell import without_transfers
from tests.support.committee_noise import SPLITS, STEPS, check, noise_in_the_clear, steps_of
from tests.support.garbled import without_points
from tests.support.held import held
from tests.support.limits import committee_of_two
from tests.support.sessions import Run
from tests.support.studies import (
    AUC,
    GINI,
    KENDALL,
    SKEWNESS,
    SPEARMAN,
    TRIPLE,
    Entropy,
    clear_sums,
    compiled_once,
    make_attempt,
    make_study,
    random_tables,
)
from umpc.errors import LocalProtocolError
from umpc.mpc.backends import predict
from umpc.mpc.masked.plan_items import CoinPlace
from umpc.mpc.transfers.channels import Channels
from umpc.planning.seconds import LINK_SECONDS, Machine, Network, predict_seconds
from umpc.protocols.registry import checked, delta_of, protocol_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.testing import lying


@pytest.fixture(autouse=True, scope="module")
def fast():
    with compiled_once(), without_points():
        yield


def study_of(kernels=KENDALL, nodes: int = 2, **changes):
    return checked(make_study(kernels, nodes, **{"noise": "in_mpc", **changes}))


# --- the released sums


@pytest.mark.parametrize("edges", ["all", "2"])
@pytest.mark.parametrize("counts", SPLITS.values(), ids=SPLITS)
def test_the_noise_is_what_the_coins_make(counts, edges):
    """Whether or not the members of the committee share edges."""
    run = check(study_of(nodes=len(counts), edges=edges), counts, f"shared {counts} {edges}")
    everybody = set(range(len(counts)))
    assert run.attempt.committee == tuple(everybody) and run.attempt.noise_chunks == ()
    assert all(set(node.peers) == everybody - {number} for number, node in enumerate(run.nodes))
    offline = {frame.step for *_, frame in run.transcript.offline}
    assert offline - {"node_seed", "material"} == steps_of(len(counts))


@pytest.mark.parametrize(
    "changes",
    [
        {"kernels": (KENDALL, GINI), "estimator": "ratio"},
        {"kernels": (GINI, "3"), "estimator": "ratio"},
        {"kernels": AUC, "sampling": "two_sample"},
        {"kernels": "a.x", "degree": 1},
        {"kernels": "a.x * b.x"},
        {"kernels": "abs(a.x - b.x) * 100000000"},
        {"kernels": TRIPLE, "degree": 3},
        {"kernels": SPEARMAN, "degree": 3},
        {"kernels": SKEWNESS, "degree": 3},
        {"noise": "binomial", "delta": "0.01", "edges": "3"},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_every_path_of_a_kernel_adds_the_same_noise(changes):
    check(study_of(nodes=3, **changes), [3, 2, 2], f"shared {changes}")


def test_a_committee_of_some():
    """Beyond ALL_MEMBERS nodes only some may draw: the others hear nothing of it."""
    with committee_of_two():
        run = check(study_of(nodes=4, edges="2"), [3, 3, 0, 0], "some of all")
    names = {run.attempt.members[member].name for member in run.attempt.committee}
    talked = [(sent, got) for sent, got, f in run.transcript.offline if f.step in STEPS]
    assert len(names) == 2 and {name for both in talked for name in both} == names


def test_law_and_delta_are_those_of_dealt_coins():
    for changes in ({"noise": "in_mpc"}, {"noise": "binomial", "delta": "1e-6"}):
        tossed, dealt = (
            make_attempt(study_of(GINI, coins=coins, **changes), [5, 6])
            for coins in ("transfers", "dealt")
        )
        assert tossed.coins == dealt.coins and tossed.ring == dealt.ring
        assert delta_of(tossed.sizes) == delta_of(dealt.sizes)
        assert (tossed.noise_chunks, dealt.toss_plan) == ((), None)
        assert tossed.toss_plan and dealt.noise_chunks


def test_every_offline_frame_has_a_place_of_its_own():
    run = check(study_of(nodes=3), [4, 3, 2], "places of shared")
    sent = run.transcript.offline + run.transcript.online
    keys = [(sender, receiver, frame.step, frame.key) for sender, receiver, frame in sent]
    assert len(set(keys)) == len(keys)


def test_a_study_of_single_records_needs_no_dealer_at_all():
    run = check(study_of("a.x", 3, degree=1), [4, 3, 2], "single")
    assert not run.attempt.needs_dealer
    assert {frame.step for *_, frame in run.transcript.offline} == STEPS
    dealt = make_attempt(study_of("a.x", 3, degree=1, coins="dealt"), [4, 3, 2])
    assert dealt.needs_dealer


@pytest.mark.parametrize(("nodes", "rounds"), [(2, 9), (3, 9), (16, 20)])
def test_rounds_and_set_ups_are_planned_with_their_delays(nodes, rounds):
    """All rounds of the coins, three of the set-up, and the time of a node's links."""
    tossed, own = (
        make_attempt(checked(make_study(KENDALL, nodes, noise=noise)), [2] * nodes)
        for noise in ("in_mpc", "distributed")
    )
    nothing, network = Machine(0.0, 0.0), Network(1.0)
    more, less = (
        predict_seconds(each, predict(each), nothing, network).offline for each in (tossed, own)
    )
    links = (nodes - 1) * LINK_SECONDS / 2
    assert tossed.toss_plan.rounds == rounds
    assert more - less == pytest.approx(rounds + 3 + links)


@pytest.mark.parametrize(
    ("changes", "coins", "trusted", "told"),
    [
        ({}, "transfers", "the dealer", "no dealer can change or know the noise"),
        ({"coins": "dealt"}, "dealt", "the dealer", "deals as the protocol says"),
        ({"kernels": "a.x", "degree": 1}, "transfers", "-", "made by the nodes alone"),
        ({"kernels": "a.x", "degree": 1, "coins": "dealt"}, "dealt", "the dealer", "dealt by"),
        ({"noise": "distributed"}, "none", "the dealer", None),
    ],
    ids=str,
)
def test_people_read_what_the_noise_depends_on(changes, coins, trusted, told):
    study = study_of(**changes)
    protocol = protocol_of(study)
    lines = dict(protocol.describe(study))
    assert study.coins == coins and protocol.trust(study).who == trusted
    assert told in lines["coins"] if told else lines == {}
    assert bool(protocol.describe_coins(study.coins)) == bool(told)


# --- a dealer that lies


def all_rows_zero():
    """Coins' rows are one-hot nowhere: no comparison with a dealt row holds, so no coin falls."""

    def rows(honest, plan, masks, count):
        factor = 0 if isinstance(plan.places[0], CoinPlace) else 1
        return [row * row.dtype.type(factor) for row in honest(plan, masks, count)]

    return lying("dealer", one_hot_rows=rows)


def known_seeds():
    """Every node gets a seed of zeros, so everybody knows all that follows from the dealer."""
    return lying("dealer", init=lambda start, dealer, attempt, _: start(dealer, attempt, bytes))


def released_noise(study, label: str, lie: Callable = nullcontext) -> tuple[list[int], Simulated]:
    """The released sums less the exact ones, under a dealer that lies in this way."""
    tables = random_tables([4, 3, 2][: len(study.nodes)], "lie")
    with lie():
        run = simulate(study, tables, Entropy(label))
    exact = clear_sums(study, tables, run.attempt.hypergraph)
    released = noisy_sums(run.transcript.shares, len(study.kernels))
    return [a - b for a, b in zip(released, exact, strict=True)], run


@pytest.mark.parametrize(
    "lie", [nullcontext, all_rows_zero, known_seeds], ids=["honest", "zero rows", "known seeds"]
)
def test_no_dealer_changes_the_noise(lie):
    """Many studies: the noise is what the members' own numbers say, and never the same number."""
    found = []
    for number in range(8):
        noise, run = released_noise(study_of(nodes=3), f"lie {number}", lie)
        assert noise == noise_in_the_clear(run)
        found += noise
    assert len(set(found)) > 3


def test_power_the_same_lie_removes_the_noise_of_dealt_coins():
    """This is what `coins = "dealt"` trusts its dealer not to do; nothing else notices."""
    study = study_of(nodes=3, coins="dealt")
    for number in range(4):
        assert released_noise(study, f"lie {number}", all_rows_zero)[0] == [0]
    assert any(released_noise(study, f"lie {number}")[0] != [0] for number in range(4))


def noises_under_one_dealer(label: str) -> list[int]:
    """The noise of 12 studies whose nodes draw anew, and whose dealer sends the same seeds."""
    study = study_of()
    return [released_noise(study, f"{label} {number}", known_seeds)[0][0] for number in range(12)]


def test_the_dealer_cannot_know_the_noise_from_what_it_dealt():
    assert len(set(noises_under_one_dealer("own"))) > 3


def test_power_coins_from_a_seed_that_the_dealer_knows_are_found():
    turns = cycle(range(2))

    def drawn(honest, seed, count):
        return honest(bytes([next(turns)]) * len(seed), count)

    with lying("node", drawn_numbers=drawn):
        assert len(set(noises_under_one_dealer("own"))) == 1
    assert next(turns) == 0, "each node drew as often as the other"


# --- the sessions


def begun(**changes) -> Run:
    return Run((3, 4), **{"noise": "in_mpc", **changes}).agree().begin().seed()


def test_nothing_is_tossed_before_the_set_up_and_a_failed_call_uses_nothing_up():
    run = begun()
    with pytest.raises(LocalProtocolError, match="nothing is set up with node-1"):
        run.nodes[0].toss()
    run.set_up().toss().fields().evaluate()
    assert len({node.release().share for node in run.nodes}) == 2


def test_the_coins_can_be_tossed_before_the_dealer_has_sent_its_seed():
    """They depend on nothing that the dealer knows, so a node need not wait for it."""
    run = Run((3, 4), noise="in_mpc").agree().begin()
    assert all(node.tosses_early for node in run.nodes)
    run.set_up().toss().seed().fields().evaluate()
    assert len({node.release().share for node in run.nodes}) == 2
    garbled = Run((3, 4), backend="garbled", dealer=None).agree().begin().nodes[0]
    assert not garbled.tosses_early


def test_nothing_is_released_without_the_coins():
    run = begun().set_up().fields().evaluate()
    with pytest.raises(LocalProtocolError, match="no noise"):
        run.nodes[0].release()


def test_a_channel_is_set_up_once_and_only_where_coins_are_tossed():
    run = begun().set_up()
    with pytest.raises(LocalProtocolError, match="set up before"):
        next(run.nodes[0].set_up(1))
    assert begun(coins="dealt").nodes[0].set_up(1) is None
    assert begun(noise="distributed").nodes[0].set_up(1) is None


def test_every_member_draws_a_seed_of_its_own_that_no_message_holds():
    run = begun()
    seeds = [node.coin_seed for node in run.nodes]
    assert len({*seeds}) == 2 and all(len(seed) == 32 for seed in seeds)
    given = {run.dealer.seed_frame(number).payload for number in range(2)}
    assert not given & {*seeds}
    for node, seed in zip(run.nodes, seeds, strict=True):
        channels = held(node, Channels)
        assert channels
        assert all(seed.hex() not in repr(each) for each in (node, *channels))
    assert begun(noise="distributed").nodes[0].coin_seed == b""


def test_only_coins_that_are_tossed_take_transfers():
    """A study with dealt coins sends as many bytes as ever, and those of the dealer less so."""
    tossed, dealt = (
        predict(make_attempt(study_of(coins=coins), [5, 4])) for coins in ("transfers", "dealt")
    )
    assert tossed.bytes_dealt < dealt.bytes_dealt
    assert tossed.bytes_offline > 5 * dealt.bytes_offline
    assert (tossed.rounds, tossed.bytes_online) == (dealt.rounds, dealt.bytes_online)


def test_the_channels_that_hide_nothing_give_the_same_release():
    """Tests that look at releases only may use them (`tests/support/bell.py`)."""
    plain, run = released_noise(study_of(), "same")
    with without_transfers():
        bare, _ = released_noise(study_of(), "same")
    assert plain == bare == noise_in_the_clear(run) and np.any(run.attempt.toss_plan.thresholds)
