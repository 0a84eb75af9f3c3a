"""Noise on small groups of pairs (remark 3): exact sums, the stated law, bytes, and its promise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.support.bell import bell_study, without_transfers
from tests.support.protocols import assert_refused, noise_of, usual, with_facts
from tests.support.statistical import SeededBits
from tests.support.studies import KENDALL, Entropy, random_tables, table
from umpc.dp.calibration import DiscreteLaplace, DistributedLaplace
from umpc.errors import LocalProtocolError, RangeError, StudyError
from umpc.protocols.registry import protocol_of
from umpc.simulation import Simulated, simulate
from umpc.study.sizes import Sizes
from umpc_papers.bell_2pc.coordinator import pair_values
from umpc_papers.bell_2pc.group_mechanism import GroupLaplace, groups_of
from umpc_papers.bell_2pc.noise_binding import check_released
from umpc_papers.testing import lying

GROUPS = {"noise": "group_laplace", "group": 3}
SILENT = "1e6"
"""An ε at which no noise falls."""


def clear_groups(study, tables, run: Simulated) -> list[np.ndarray]:
    """The clear sums of all groups, cell by cell."""
    found = []
    for owners, cell in sorted(run.attempt.hypergraph.cells.items()):
        rows = cell.edges(0, cell.count)
        records = [
            {name: column[row] for name, column in tables[node].items()}
            for node, row in zip(owners, rows, strict=True)
        ]
        values = np.stack([kernel.evaluate(records) for kernel in study.parsed_kernels])
        starts = np.arange(0, cell.count, study.settings.group)
        found.append(np.add.reduceat(values, starts, axis=1))
    return found


def noise_of_groups(study, tables, label: str) -> dict[bool, list[int]]:
    """All groups' noise of a run; True for groups of two nodes."""
    with without_transfers():
        run = simulate(study, tables, Entropy(label))
    cells = sorted(run.attempt.hypergraph.cells)
    noisy = pair_values(run.transcript.shares, run.attempt)
    rows = zip(cells, noisy, clear_groups(study, tables, run), strict=True)
    found: dict[bool, list[int]] = {False: [], True: []}
    for owners, released, clear in rows:
        found[len(set(owners)) > 1] += (released - clear)[0].tolist()
    return found


def test_without_noise_every_groups_sum_is_the_clear_one_at_the_predicted_bytes():
    for counts, edges in (([5, 4], "all"), ([4, 0, 3, 5], "2p"), ([6], "all")):
        study = bell_study(
            (KENDALL, "a.x == b.x"),
            len(counts),
            x=("0", "3"),
            y=("0", "3"),
            estimator="ratio",
            epsilon=SILENT,
            edges=edges,
            **GROUPS,
        )
        tables = random_tables(counts, f"groups {counts}", 0, 1)
        with without_transfers():
            run = simulate(study, tables, Entropy("groups"))
        clear = clear_groups(study, tables, run)
        released = list(pair_values(run.transcript.shares, run.attempt))
        assert all(map(np.array_equal, released, clear))
        report = run.report
        sums = [sum(int(each[row].sum()) for each in clear) for row in (0, 1)]
        units = [float(kernel.unit) for kernel in study.parsed_kernels]
        expected = [total * unit / report.edges for total, unit in zip(sums, units, strict=True)]
        assert [each.mean for each in report.sums] == pytest.approx(expected)
        assert report.bytes_online == report.bytes_online_predicted
        assert report.bytes_online_by_node == report.bytes_online_by_node_predicted
        assert report.bytes_offline == report.bytes_offline_predicted
        assert (report.rounds, report.delta) == (report.rounds_predicted, 0)
        width = run.attempt.ring.bytes * 2
        for node, share in enumerate(run.transcript.shares):
            cells = run.attempt.cells_of(node).values()
            assert len(share) == width * sum(groups_of(cell.count, 3) for cell in cells)


def test_the_noise_of_a_group_is_two_laws_between_nodes_and_one_inside_a_node():
    """ε = 1 and k = 19: each law has scale 19, whatever the group's size is."""
    study = bell_study(epsilon="1", edges="all", noise="group_laplace", group=2)
    found: dict[bool, list[int]] = {False: [], True: []}
    for number in range(12):
        tables = random_tables([10, 10], f"law {number}", 0, 1)
        for kind, noise in noise_of_groups(study, tables, f"law {number}").items():
            found[kind] += noise
    one = DiscreteLaplace(Fraction(1, 19)).std ** 2
    for kind, laws in ((True, 2), (False, 1)):
        noise = np.array(found[kind])
        variance = np.mean(noise.astype(float) ** 2) / (laws * one)
        assert len(noise) > 400 and 0.75 < variance < 1.3, f"{kind}: {variance}"
        assert abs(noise.mean()) < 5 * (laws * one / len(noise)) ** 0.5
    assert stats.kstest(np.abs(found[False]), np.abs(found[True])).pvalue < 1e-3, "other laws"


def test_the_law_covers_every_group_and_its_bounds_hold():
    law = GroupLaplace(Fraction(1), 2, 100, 5, 8, 3)
    assert law.noise == DistributedLaplace(Fraction(1), 10, 2, 1)
    assert law.most_groups == 100 // 8 + 3 and law.delta == 0
    assert GroupLaplace(Fraction(1), 2, 100, 5, 1, 3).most_groups == 100
    drawn = [law.draw(SeededBits(f"draw {number}")) for number in range(50)]
    assert max(map(abs, drawn)) <= law.pair_tail_bound() <= law.tail_bound()
    for counts in ([7, 9], [3, 3, 3], [16]):
        study = bell_study(nodes=len(counts), edges="all", **GROUPS)
        run_sizes = Sizes(study, sum(counts), holders=len(counts))
        pairs = [n * (n - 1) // 2 for n in counts]
        pairs += [a * b for i, a in enumerate(counts) for b in counts[:i]]
        assert sum(groups_of(each, 3) for each in pairs) <= noise_of(run_sizes)[0].most_groups


def test_larger_groups_have_less_noise_and_allow_all_pairs_of_more_records():
    """512 records have 130,816 pairs, the most that can each be released alone."""

    def sizes(records: int, **changes) -> Sizes:
        return Sizes(bell_study(edges="all", **changes), records, holders=2)

    groups = [noise_of(sizes(400, noise="group_laplace", group=g))[0].std for g in (8, 64)]
    alone = noise_of(sizes(400))[0].std
    assert groups[0] == pytest.approx(alone / 2, rel=0.02)
    assert groups[1] == pytest.approx(groups[0] / 8**0.5, rel=0.02)
    check_released(sizes(512))
    check_released(sizes(1400, noise="group_laplace", group=8))
    with pytest.raises(RangeError, match=r'every pair: .* larger groups with noise = "gr'):
        check_released(sizes(600))
    with pytest.raises(RangeError, match="every group of 8 pairs"):
        check_released(sizes(2000, noise="group_laplace", group=8))


def test_settings_of_groups():
    study = bell_study(noise="group_laplace", group=4)
    assert usual(study.replaced(group=0)).settings.group == 8
    for changes, message in (
        ({"group": 0}, "whose sum gets one noise, 1 to 1048576; got 0"),
        ({"delta": "1e-9"}, "without delta; leave delta out"),
        ({"noise": "pair_laplace"}, 'group is for noise = "group_laplace", and this study has'),
    ):
        assert_refused(with_facts(study, **changes), StudyError, message)
    words = protocol_of(study).describe_noise("group_laplace")
    assert "both nodes on each group" in words


def test_a_node_whose_noise_is_half_as_large_is_found():
    """The promise rests on a node's own noise: k pairs of range Δ, so scale k·Δ/ε."""
    study = bell_study(epsilon="1", edges="4p", noise="group_laplace", group=1)
    inside = [table([0, 1], [0, 1]), table([], [])]

    def spread() -> float:
        noise = [
            each
            for number in range(30)
            for each in noise_of_groups(study, inside, f"half {number}")[False]
        ]
        return float(np.mean(np.square(noise))) / DiscreteLaplace(Fraction(1, 4)).std ** 2

    assert 0.6 < spread() < 1.6

    def halved(honest, sizes):
        return [GroupLaplace(2 * law.epsilon, *_rest(law)) for law in honest(sizes)]

    def _rest(law):
        return law.width, law.edges, law.degree, law.group, law.cells

    with lying("node", noise_of_pairs=halved):
        assert spread() < 0.5


def test_the_share_leaves_once_and_only_after_all_pairs():
    study = bell_study(edges="all", **GROUPS)
    with without_transfers():
        run = simulate(study, random_tables([4, 3], "once", 0, 1), Entropy("once"))
    with pytest.raises(LocalProtocolError, match="released before"):
        run.nodes[0].release()
