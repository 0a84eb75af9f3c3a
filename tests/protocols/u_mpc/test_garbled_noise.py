"""Studies without a dealer whose noise a committee draws: exact sums plus the coins' sum, at the
predicted cost.
"""

from __future__ import annotations

import pytest

from tests.support.committee_noise import SPLITS, check, steps_of
from tests.support.garbled import garbled_study, without_points
from tests.support.limits import committee_of_two
from tests.support.studies import (
    AUC,
    GINI,
    KENDALL,
    Entropy,
    compiled_once,
    make_attempt,
    make_study,
    random_tables,
)
from umpc.mpc.backends import predict
from umpc.mpc.transfers import message_shapes
from umpc.planning.seconds import Machine, Network, predict_seconds
from umpc.protocols.registry import checked, delta_of
from umpc.simulation import simulate
from umpc.testing import lying


@pytest.fixture(autouse=True, scope="module")
def fast():
    with compiled_once(), without_points():
        yield


@pytest.mark.parametrize("edges", ["all", "2"])
@pytest.mark.parametrize("counts", SPLITS.values(), ids=SPLITS)
def test_the_noise_is_what_the_coins_make(counts, edges):
    """Whether or not the members of the committee share edges."""
    run = check(
        garbled_study(KENDALL, len(counts), noise="in_mpc", edges=edges),
        counts,
        f"coins {counts} {edges}",
    )
    everybody = set(range(len(counts)))
    assert run.attempt.committee == tuple(everybody)
    assert all(set(node.peers) == everybody - {number} for number, node in enumerate(run.nodes))
    assert {frame.step for *_, frame in run.transcript.offline} == steps_of(len(counts))
    assert not run.attempt.needs_dealer and run.attempt.noise_chunks == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"kernels": (KENDALL, GINI), "estimator": "ratio"},
        {"kernels": (GINI, "3"), "estimator": "ratio"},
        {"kernels": AUC, "sampling": "two_sample"},
        {"kernels": "a.x", "degree": 1},
        {"kernels": "abs(a.x - b.x) * 100000000"},
        {"kernels": KENDALL, "noise": "binomial", "delta": "0.01", "edges": "3"},
    ],
    ids=str,
)
def test_other_studies(changes):
    check(garbled_study(nodes=3, **{"noise": "in_mpc", **changes}), [4, 3, 2], f"others {changes}")


def test_a_study_whose_sums_are_public_has_no_coins():
    run = check(garbled_study("3", 2, noise="in_mpc"), [3, 2], "public")
    assert run.attempt.toss_plan is None and run.report.noise_std == 0


def test_law_and_delta_are_those_of_a_dealers_committee():
    for changes in ({"noise": "in_mpc"}, {"noise": "binomial", "delta": "1e-6"}):
        alone = check(garbled_study(GINI, 2, **changes), [5, 6], f"law {changes}")
        dealt = simulate(
            checked(make_study(GINI, 2, coins="dealt", **changes)),
            random_tables([5, 6], "law"),
            Entropy("law"),
        )
        assert (
            alone.attempt.coins == dealt.attempt.coins and alone.attempt.ring == dealt.attempt.ring
        )
        assert delta_of(alone.attempt.sizes) == delta_of(dealt.attempt.sizes)
        assert alone.report.noise_std == dealt.report.noise_std and dealt.attempt.toss_plan is None


def test_a_committee_of_some():
    """Beyond ALL_MEMBERS nodes only some may draw: the others hear nothing of it."""
    with committee_of_two():
        run = check(garbled_study(KENDALL, 4, noise="in_mpc", edges="2"), [3, 3, 0, 0], "some")
    assert len(run.attempt.committee) == 2
    names = {run.attempt.members[member].name for member in run.attempt.committee}
    talkers = {
        name
        for *both, frame in run.transcript.offline
        for name in both
        if frame.step == "ot_open_bits"
    }
    assert talkers == names


def test_every_offline_frame_has_a_place_of_its_own():
    """Frames of one link are told apart by their keys: neither set-up nor labels' transfers have
    those of coins.
    """
    run = check(garbled_study(KENDALL, 3, noise="in_mpc"), [4, 3, 2], "places")
    keys = [
        (sender, receiver, frame.key)
        for sender, receiver, frame in run.transcript.offline + run.transcript.online
    ]
    assert len(set(keys)) == len(keys)


def test_no_transfer_of_coins_is_hashed_twice(limit):
    """Nor in another batch: under one key and Δ every number stands for one transfer."""
    hashed = []

    def watched(honest, blocks, session):
        hashed.append((session, range(blocks.start, blocks.start + len(blocks.blocks))))
        return honest(blocks, session)

    limit(message_shapes, MAX_PAYLOAD=1 << 14)
    study = garbled_study((KENDALL, GINI), 2, noise="in_mpc", estimator="ratio")
    with lying("node", hash_blocks=watched):
        run = check(study, [30, 40], "numbers")
    numbers = [number for _, batch in hashed for number in batch]
    assert len(run.attempt.toss_plan.ranges) > 1 and len({session for session, _ in hashed}) == 1
    assert sorted(numbers) == sorted(
        3 * [*range(max(numbers) + 1)]
    )  # once by the receiver, both labels by the sender


@pytest.mark.parametrize(("nodes", "rounds"), [(2, 9), (3, 9), (16, 20)])
def test_rounds_of_coins_are_planned_with_their_delays(nodes, rounds):
    attempts = [
        make_attempt(garbled_study(KENDALL, nodes, noise=n), [2] * nodes)
        for n in ("in_mpc", "distributed")
    ]
    nothing, network = Machine(0.0, 0.0), Network(1.0)
    tossed, own = (
        predict_seconds(each, predict(each), nothing, network).offline for each in attempts
    )
    assert attempts[0].toss_plan.rounds == rounds and tossed == pytest.approx(own + rounds)
