"""A trusted curator in memory, by the real sides: its estimate and cost, drawn once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.central import COUNTS, MECHANISMS, central_study, central_tables
from tests.support.protocols import coordinator_of, messages_of
from tests.support.studies import GINI, LOUD, SPEARMAN, Entropy, FieldText
from umpc.cli.table import exact_over_all
from umpc.errors import RangeError
from umpc.protocols.base.one_message import check_size
from umpc.protocols.base.one_message_protocol import cost_of_messages
from umpc.simulation import simulate
from umpc.study.messages import MAX_PAYLOAD
from umpc.ustat.error_law import HEAVY_TAILS
from umpc_papers.central.columns import SEED_BYTES
from umpc_papers.central.coordinator import CuratorCoordinator
from umpc_papers.central.messages import CuratorMessages, bits_of
from umpc_papers.testing import lying

by_noise = pytest.mark.parametrize("noise", MECHANISMS)


def run(study, label: str = "run", counts=COUNTS):
    return simulate(study, central_tables(counts), Entropy(label))


def pooled(counts=COUNTS) -> dict[str, np.ndarray]:
    tables = central_tables(counts)
    return {name: np.concatenate([table[name] for table in tables]) for name in "xy"}


@by_noise
def test_the_estimate_is_the_librarys_at_the_predicted_cost(noise):
    """They are equal bit for bit, so the proofs for the library's noise hold for a study."""
    study = central_study(noise)
    ran, of = run(study), messages_of(study)
    report, choice = ran.report, of.choice(20)
    seed = of.seed_of([share[:SEED_BYTES] for share in ran.transcript.shares], 20)
    family = choice.family(20, bits_of(seed))
    assert report.estimate == float(choice.estimate(pooled(), bits_of(seed)))
    assert report.noise_std == choice.noise_std(
        20, family
    ) and report.sampling_std_bound == choice.sampling_bound(20)
    assert (report.edges, report.max_degree) == (family.count, family.occurrences.max())
    assert report.bytes_online == report.bytes_online_predicted == 2 * 32 + 2 * 3 + 2 * 3
    assert report.rounds == report.rounds_predicted == 1 and report.bytes_offline == 0
    assert (report.protocol, report.noise, report.epsilon, report.delta) == ("central", noise, 1, 0)
    assert -1 <= report.low < report.high <= 1, "the range of the kernel"
    assert cost_of_messages(of, [(0, 11), (0, 9)]).bytes_online == report.bytes_online


@pytest.mark.parametrize(
    "changes", [{"kernels": SPEARMAN, "degree": 3}, {"kernels": "a.x", "degree": 1}], ids=str
)
@by_noise
def test_other_degrees_and_one_node_alone(noise, changes):
    """Without noise only the choice of sets is left, within six deviations of its bound."""
    study = central_study(noise, nodes=1, epsilon=LOUD, **changes)
    report, exact = run(study, counts=(60,)).report, exact_over_all(study, central_tables((60,)))
    grid = float(study.parsed_kernels[0].interval.width) / (1 << 16)
    assert abs(report.estimate - exact) <= 6 * report.sampling_std_bound + grid
    assert (report.sampling_std_bound > 0) == (noise not in ("laplace", "coinpress_all", "hajek"))


def test_categories_are_numbers_of_their_labels():
    study = central_study(
        kernels="a.job == b.job", fields=(FieldText.of_categories("job", "abc"),), epsilon=LOUD
    )
    tables = [{"job": np.array([0, 1, 2, 0])}, {"job": np.array([2, 2])}]
    assert simulate(study, tables, Entropy("job")).report.estimate == pytest.approx(4 / 15)


# --- what is drawn is drawn once
# ------------------------------------------------------------------------------


@by_noise
def test_the_same_parts_give_the_same_number_and_any_other_part_another(noise):
    """Noise of thousands of steps, so that no two draws are equal by chance."""
    study = central_study(noise, epsilon="0.001")
    of, shares = messages_of(study), run(study).transcript.shares
    counts = [(0, count) for count in COUNTS]
    first = of.aggregate(shares, counts)
    assert CuratorMessages(study.replaced()).aggregate(shares, counts) == first
    for node in (0, 1):
        other = [*shares]
        other[node] = bytes([shares[node][0] ^ 1]) + shares[node][1:]
        assert of.aggregate(other, counts).value != first.value
    assert run(study, "another").report.estimate != first.value


def test_a_noise_of_another_size_is_drawn_anew():
    """Machines could tune differently: one uniform number under two scales shows the value."""
    of, parts = messages_of(central_study("hajek")), [bytes(32), bytes(32)]
    seeds = {of.seed_of(parts, 20)}
    with lying("coordinator", usual_std=lambda *_: 0.123):
        seeds |= {
            of.seed_of(parts, 20),
            of.seed_of(parts, 20),
            messages_of(central_study("laplace")).seed_of(parts, 20),
        }
    assert len(seeds) == 3


def test_bits_are_uniform_integers_of_their_width():
    bits = bits_of(bytes(32))
    drawn = [bits(7) for _ in range(2000)]
    assert set(drawn) == set(range(128)) and bits(0) == 0 and bits(300).bit_length() > 280


# --- what is refused
# ----------------------------------------------------------------------------------------


def test_a_message_beyond_a_mebibyte_is_refused_with_the_nodes_name():
    of = messages_of(central_study())
    check_size(of, "north", (0, 2 * (MAX_PAYLOAD - 40)))
    with pytest.raises(
        RangeError,
        match=r"message of north would have .* at most 1 MiB .* coarser resolutions, or sp",
    ):
        check_size(of, "north", (0, 2 * MAX_PAYLOAD))


def test_what_is_told_of_a_run_beforehand_is_what_it_reports():
    for noise in MECHANISMS:
        study = central_study(noise, kernels=GINI)
        report = run(study).report
        rel = 0.5 if noise.endswith("subsampled") else 1e-12
        assert messages_of(study).predicted_std(pooled(), 0) == pytest.approx(
            report.noise_std, rel=rel
        )
    assert isinstance(coordinator_of(central_study()), CuratorCoordinator)


@pytest.mark.parametrize("noise", MECHANISMS)
def test_the_report_tells_heavy_tails_from_laplace_noise(noise):
    study = central_study(noise)
    one = simulate(study, central_tables(), Entropy("tails")).report.sums[0]
    assert (one.noise_shape == HEAVY_TAILS) == noise.startswith("hajek")
