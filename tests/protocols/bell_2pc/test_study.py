"""Noisy pairs as whole studies in memory: exact sums where noise is off, at the stated cost.

α is below. Where only released values are looked at, the transfers are those of
`bell.without_transfers`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from scipy import stats

from tests.protocols.u_mpc.test_library import check_cost, counts_of, study_of, tables_of
from tests.support.bell import (
    EQUAL,
    bell_study,
    clear_values,
    laws_of,
    noisy_values,
    remembered,
    without_transfers,
)
from tests.support.garbled import without_dealer
from tests.support.protocols import coordinator_of, with_facts
from tests.support.studies import (
    GINI,
    KENDALL,
    Entropy,
    clear_sums,
    make_members,
    make_study,
    random_tables,
    table,
)
from tests.support.transfers import WRONG_SHAPES, altered, flip
from umpc.crypto import rounds
from umpc.crypto.prg import Stream
from umpc.errors import (
    AlreadyReleased,
    EncodingError,
    ImpossibleResult,
    InvalidEpsilon,
    KernelError,
    RangeError,
    RemoteProtocolError,
    StudyError,
)
from umpc.protocols.bell_2pc.noise_binding import MAX_RELEASED, check_released
from umpc.protocols.bell_2pc.pair_mechanisms import MOST_VALUES
from umpc.protocols.registry import attempt_of, checked
from umpc.protocols.u_mpc.sums import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.report import Measured
from umpc.study.sizes import Sizes
from umpc.ustat.sampling import matchings
from umpc.ustat.statistics import LIBRARY

PAIRS = [name for name, statistic in LIBRARY.items() if statistic.degree == 2]
by_statistic = pytest.mark.parametrize("name", PAIRS)
SILENT = 30
"""ε0 over the kernel's range: one coin of each sign is left, and falls with a probability of e^-30.
"""
CERTAIN = "1e6"
"""An ε at which a response is wrong with a probability of 2^-46 for each wrong value."""
ALPHA = 1e-6
"""Chance that a chi-square test of right code fails, had its seed been chosen at random."""


@pytest.fixture(autouse=True, scope="module")
def fast():
    with remembered():
        yield


def edges_of(name: str) -> str:
    return "5" if LIBRARY[name].sampling == "two_sample" else "2p"


def silent_study(name: str, tables, edges: str) -> Study:
    """A statistic with circuits of coins that do not fall: each sum has as much of ε as its range
    asks for.
    """
    study = without_dealer(study_of(name, len(tables), edges))
    ranges = [kernel.sensitivity_units for kernel in study.parsed_kernels]
    classes = [sum(int((t["label"] == 0).sum()) for t in tables)] if study.two_sample else []
    degree = Sizes(study, sum(counts_of(name, len(tables))), *classes).max_degree
    split = tuple(str(Fraction(each, sum(ranges))) for each in ranges)
    epsilon = str(SILENT * sum(ranges) * degree)
    return changed(study, protocol="bell-2pc", noise="pair_laplace", epsilon=epsilon, split=split)


def changed(study: Study, **changes) -> Study:
    return checked(with_facts(study, **changes))


def check_exact(study: Study, tables, label: str) -> Simulated:
    """All that is released is the clear sum over the same E, pair by pair; costs are the predicted
    ones.
    """
    run = simulate(study, tables, Entropy(label))
    clear, noisy = clear_values(study, tables, run), noisy_values(run)
    assert clear.keys() == noisy.keys() and all(
        np.array_equal(clear[owners], noisy[owners]) for owners in clear
    )
    expected = clear_sums(study, tables, run.attempt.hypergraph)
    assert noisy_sums(run.transcript.shares, len(study.kernels), run.attempt.ring) == expected, (
        label
    )
    means = [
        float(s * k.unit / run.report.edges)
        for s, k in zip(expected, study.parsed_kernels, strict=True)
    ]
    assert [entry.mean for entry in run.report.sums] == pytest.approx(means, rel=1e-9, abs=1e-9)
    check_cost(run)
    return run


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
@by_statistic
def test_without_noise_every_statistic_is_the_clear_one_over_the_same_pairs(name, nodes):
    label = f"bell {name} {nodes}"
    tables = tables_of(study_of(name, nodes), "ties", counts_of(name, nodes), label)
    with without_transfers():
        run = check_exact(silent_study(name, tables, edges_of(name)), tables, label)
    assert [noise.numbers for noise in run.attempt.pair_noise] == [2] * len(run.report.sums), (
        "one coin of each sign"
    )
    assert run.report.protocol == "bell-2pc" and run.report.rounds == (4 if nodes > 1 else 1)


@pytest.mark.parametrize("nodes", [1, 2, 3])
@by_statistic
def test_responses_that_are_certain_are_the_clear_values(name, nodes):
    study, label = without_dealer(study_of(name, nodes, edges_of(name))), f"response {name} {nodes}"
    study = changed(study, protocol="bell-2pc", noise="randomised_response", epsilon=CERTAIN)
    tables = tables_of(study, "random", counts_of(name, nodes), label)
    values = [kernel.sensitivity_units + 1 for kernel in study.parsed_kernels]
    if max(values) > MOST_VALUES:
        with pytest.raises(InvalidEpsilon, match=f"at most {MOST_VALUES} values, this one has"):
            simulate(study, tables, Entropy(label))
        return
    with without_transfers():
        check_exact(study, tables, label)


@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
@pytest.mark.parametrize("pairings", [1, 2, 5])
@pytest.mark.parametrize("counts", [[3, 4], [5, 1, 1], [2, 0, 3, 1, 5]], ids=str)
def test_with_transfers_over_any_pairings_of_odd_numbers_of_records(noise, pairings, counts):
    """Only the base transfers are not the real ones. Each pairing leaves one record out."""
    epsilon = CERTAIN if noise == "randomised_response" else str(SILENT * 2 * pairings)
    study = bell_study(
        KENDALL, len(counts), x=("0", "3"), noise=noise, epsilon=epsilon, edges=f"{pairings}p"
    )
    label = f"odd {pairings} {counts} {noise}"
    run = check_exact(study, random_tables(counts, label, 0, 1), label)
    records, graph = sum(counts), run.attempt.hypergraph
    degrees = np.concatenate([graph.degrees(node) for node in range(len(counts))])
    assert degrees.sum() == 2 * run.report.edges == 2 * pairings * (records // 2)
    assert degrees.max() <= run.report.max_degree == pairings and degrees.min() >= 0


@pytest.mark.parametrize("sums", [(KENDALL, GINI), (EQUAL, "3")], ids=str)
@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
def test_several_sums_have_coins_of_their_own(noise, sums):
    epsilon = CERTAIN if noise == "randomised_response" else str(2 * 2 * SILENT * 3)
    changes = {"x": ("0", "3"), "y": ("0", "3"), "noise": noise, "epsilon": epsilon, "edges": "2p"}
    check_exact(
        bell_study(sums, 2, estimator="ratio", **changes), random_tables([5, 4], "sums"), "sums"
    )


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("kernel", ["a.x", "b.x", "a.x * b.y"])
def test_kernels_of_two_samples_that_read_one_class_only(kernel, order):
    """One site has the first class, the other the second: then one of the two has no bits of
    records to send.
    """
    study = bell_study(kernel, 2, sampling="two_sample", edges="all", epsilon=str(SILENT * 3))
    tables = [table([0, 1, 1], [1, 0, 1], [0, 0, 0]), table([1, 0, 1], [0, 1, 1], [1, 1, 1])][
        ::order
    ]
    check_exact(study, tables, "one class")


@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
def test_a_node_without_records_in_any_pair_releases_nothing(noise):
    """Its only record is left out of the pairing, or it has none."""
    epsilon = CERTAIN if noise == "randomised_response" else str(SILENT)
    study = bell_study(EQUAL, 3, noise=noise, epsilon=epsilon)
    for counts in ([4, 1, 2], [3, 0, 3]):
        for trial in count():
            label = f"left out {counts} {trial} {noise}"
            with without_transfers():
                run = check_exact(study, random_tables(counts, label, 0, 1), label)
            if not run.attempt.hypergraph.degrees(1).any():
                break
            assert trial < 60
        assert run.nodes[1].peers == () and run.transcript.shares[1] == b""
        assert run.attempt.released_values(1) == 0


def test_all_pairs_with_delta_have_less_noise_than_without():
    """Advanced composition over k = 19 pairs of a record, at its cost; δ is what was asked for and
    finite bits.
    """
    tables = random_tables([12, 8], "advanced", 0, 1)
    with without_transfers():
        runs = [
            simulate(bell_study(EQUAL, 2, edges="all", delta=delta), tables, Entropy("advanced"))
            for delta in ("", "1e-3")
        ]
    basic, advanced = (laws_of(run)[0] for run in runs)
    assert basic.epsilon == Fraction(1, 19) < advanced.epsilon
    assert runs[1].report.noise_std < 0.9 * runs[0].report.noise_std
    assert [run.report.delta for run in runs] == pytest.approx([0, 1e-3], abs=1e-9) and runs[
        0
    ].report.delta > 0
    for run in runs:
        check_cost(run)
        assert (run.report.edges, run.report.max_degree) == (190, 19)
        exact = clear_sums(run.attempt.study, tables, run.attempt.hypergraph)[0] / 190
        assert abs(run.report.estimate - exact) < 6 * run.report.noise_std


def test_many_chunks_are_the_same_as_one(monkeypatch):
    study = bell_study(KENDALL, 3, x=("0", "3"), epsilon=str(SILENT * 4), edges="2p")
    tables = random_tables([9, 8, 6], "chunks", 0, 1)
    one = check_exact(study, tables, "chunks")
    monkeypatch.setattr("umpc.mpc.garbled.plan.EDGES", 3)
    many = check_exact(study, tables, "chunks")
    assert many.report.estimate == one.report.estimate
    few, steps = (
        [frame for *_, frame in run.transcript.online if frame.step == "coins"]
        for run in (one, many)
    )
    assert len(few) == 3 and len(steps) > 2 * len(few)
    assert {frame.round for frame in steps} == {1} and len({frame.key for frame in steps}) == len(
        steps
    )


def test_pairings_are_uniform_and_independent_of_each_other():
    """4 records have 3 pairings, and 9 choices of two; each of 5 records is left out equally
    often.
    """
    words, draws = Stream(bytes(32)).words, 1800
    partners = np.array([matchings(4, 2, words).reshape(2, 2, 2) for _ in range(draws)])
    with_0 = np.array(
        [[pair[pair != 0][0] for rows in two for pair in rows if 0 in pair] for two in partners]
    )
    counts = np.bincount(3 * (with_0[:, 0] - 1) + with_0[:, 1] - 1, minlength=9)
    assert stats.chisquare(counts).pvalue > ALPHA, counts
    absent = [10 - int(matchings(5, 1, words).sum()) for _ in range(draws)]
    assert stats.chisquare(np.bincount(absent, minlength=5)).pvalue > ALPHA


# --- released before
# ------------------------------------------------------------------------------------------


def released(run: Simulated) -> list[m.Released]:
    sessions = zip(run.transcript.shares, run.nodes, strict=True)
    return [
        m.Released(run.attempt.id, share, node.records, node.accept().first_class)
        for share, node in sessions
    ]


@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
def test_stored_shares_give_the_same_report_again(noise):
    study = bell_study((EQUAL, GINI), 3, x=("0", "3"), noise=noise, estimator="ratio", edges="2p")
    with without_transfers():
        run = simulate(study, random_tables([5, 0, 4], "replay", 0, 3), Entropy("replay"))
    coordinator = coordinator_of(study)
    assert coordinator.agree(released(run)) is None
    again = coordinator.replay(released(run), Measured(replayed=True))
    kept = ("estimate", "noise_std", "sums", "epsilon", "delta", "edges", "records", "note")
    assert (
        all(getattr(again, name) == getattr(run.report, name) for name in kept) and again.replayed
    )


def test_a_share_of_another_length_or_attempt_names_its_node():
    with without_transfers():
        run = simulate(bell_study(), random_tables([5, 4], "lengths", 0, 1), Entropy("lengths"))
    answers = released(run)
    coordinator = coordinator_of(run.attempt.study)
    coordinator._attempt = run.attempt
    for share in (b"", answers[1].share[:-4], answers[1].share + bytes(4), answers[1].share[:-1]):
        wrong = [answers[0], m.Released(run.attempt.id, share, 4, 0)]
        with pytest.raises(RemoteProtocolError, match="node-1 released") as caught:
            coordinator.finish(wrong, Measured())
        assert (caught.value.culprit, caught.value.step) == ("node-1", "release")
    wrong = [answers[0], m.Released(bytes(32), answers[1].share, 4, 0)]
    with pytest.raises(AlreadyReleased, match="another attempt"):
        coordinator.finish(wrong, Measured())
    with pytest.raises(RemoteProtocolError, match="node-1 released"):
        coordinator.replay(
            [answers[0], m.Released(run.attempt.id, answers[1].share[:-1], 4, 0)], Measured()
        )


def test_stored_shares_of_another_number_of_pairs_are_refused():
    """Stored values must cover |E| pairs, whoever shares them: else the report's sum is not that
    over E.
    """
    with without_transfers():
        run = simulate(bell_study(), random_tables([5, 5], "stored", 0, 1), Entropy("stored"))
    answers, coordinator = released(run), coordinator_of(run.attempt.study)
    assert run.attempt.released_values(0) < run.report.edges == 5
    for share in (b"", answers[1].share * 3):
        with pytest.raises((RemoteProtocolError, AlreadyReleased)):
            coordinator.replay([answers[0], m.Released(run.attempt.id, share, 5, 0)], Measured())


# --- bad messages
# ---------------------------------------------------------------------------------------------


def run_altered(monkeypatch, step: str, change, label: str) -> Simulated:
    """A study in which one step's messages are changed on the way."""
    real = rounds.run_in_memory
    monkeypatch.setattr(
        "umpc.simulation.run_in_memory",
        lambda parties: real([altered(party, step, change) for party in parties]),
    )
    study = bell_study(KENDALL, x=("0", "3"), epsilon=str(SILENT * 2))
    return simulate(study, random_tables([5, 5], label), Entropy(label))


@pytest.mark.parametrize(("step", "culprit"), [("coins", "node-1"), ("garbled", "node-0")])
@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_a_message_of_another_shape_names_its_sender(monkeypatch, name, step, culprit):
    with pytest.raises((RemoteProtocolError, EncodingError)) as caught:
        run_altered(monkeypatch, step, WRONG_SHAPES[name], "shapes")
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.parametrize("change", [flip(0, 1), flip(77, 0x80), flip(10**6, 0xFF)])
@pytest.mark.parametrize("step", ["coins", "garbled"])
def test_a_message_of_other_bits_gives_a_possible_number_or_none(monkeypatch, step, change):
    """A number that no pair and no noise can give is refused; any other one is not noticed."""
    try:
        run = run_altered(monkeypatch, step, change, "bits")
    except ImpossibleResult:
        return
    assert run.report.edges == 5
    assert -1 <= run.report.estimate <= 1, "noise is silent here"


# --- refused
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "records", "error", "reason"),
    [
        (
            {"edges": "all"},
            600,
            RangeError,
            f"at most {MAX_RELEASED} are possible; ask for fewer edges",
        ),
        (
            {"edges": "999999999999999999p"},
            4,
            RangeError,
            "at most 65536 pairings can be drawn; ask for fewer",
        ),
        (
            {"edges": "1p", "sampling": "two_sample"},
            8,
            StudyError,
            'those of two classes; ask for "2n"',
        ),
    ],
    ids=str,
)
def test_sizes_that_are_refused(changes, records, error, reason):
    """The coordinator refuses them before any opening, and a node does not rely on that."""
    study = bell_study(**changes)
    half = records // 2
    members, openings = make_members(study, [half, half], first=[half // 2, half // 2])
    with pytest.raises(error, match=reason):
        coordinator_of(study).check_sizes(members)
    with pytest.raises(error, match=reason):
        attempt_of(study, members, openings)


def test_as_many_values_as_a_message_holds_are_possible():
    study = bell_study((EQUAL, GINI), 2, estimator="ratio", edges=str(MAX_RELEASED // 2))
    sizes = Sizes(study, 1000)
    assert sizes.edges == MAX_RELEASED // 2
    check_released(sizes)
    with pytest.raises(RangeError, match="releases a value of every pair"):
        check_released(Sizes(changed(study, edges=str(MAX_RELEASED // 2 + 1)), 1000))


@pytest.mark.parametrize("records", [2, 1000])
def test_pairings_without_end_are_refused_under_every_protocol(records):
    """They are listed one by one, so their number has a bound: whatever the number of different
    pairs is.
    """
    study = checked(make_study(KENDALL, 2, edges="999999999999999999p"))
    with pytest.raises(RangeError, match="ask for fewer"):
        _ = Sizes(study, records).edges


def test_noise_that_takes_too_large_a_circuit_is_refused_before_anything_is_sent():
    wide = {"x": ("0", "1000000", "0.001"), "y": ("0", "1000000", "0.001")}
    study = bell_study("(a.x - b.x) * (a.y - b.y)", 2, epsilon="1e-3", **wide)
    with pytest.raises(
        (KernelError, InvalidEpsilon), match=r"narrow its fields' bounds|larger epsilon"
    ):
        simulate(study, [table([0, 1], [0, 1])] * 2, Entropy("wide"))


def test_an_epsilon_that_leaves_nothing_of_a_response_is_refused_before_anything_is_charged():
    study = bell_study(noise="randomised_response", epsilon="1e-15")
    with pytest.raises(InvalidEpsilon, match="larger epsilon"):
        simulate(study, random_tables([3, 3], "nothing", 0, 1), Entropy("nothing"))
