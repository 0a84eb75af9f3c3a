"""The grid where nodes may lie, among honest processes: the clear values at predicted costs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.grid.test_grid_run import TAKEN
from tests.protocols.grid.test_grid_run import study_of as library_study_of
from tests.protocols.u_mpc.test_library import counts_of, tables_of
from tests.support.grid import cells_of, grid_study, lying
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.protocols import assert_refused, noise_of
from tests.support.studies import (
    AUC,
    KENDALL,
    LOUD,
    TRIPLE,
    Entropy,
    clear_sums,
    graph_of,
    random_tables,
    table,
)
from tests.support.verified import VerifiedRun
from umpc.crypto import field
from umpc.crypto.prime_field import PRIME
from umpc.errors import LocalProtocolError, RangeError, StudyError
from umpc.proto.codec import encode_frame
from umpc.protocols.grid.binding import grid_of, ring_of
from umpc.protocols.grid.lookup_proof import (
    ANSWER,
    INVERSES,
    LIST,
    MOST_RECORDS,
    OPENING,
    PROOF,
    STATEMENT,
    ProofShape,
    bytes_by_step,
    inverses,
    looked_up,
    shapes_of,
    values_of,
)
from umpc.protocols.grid.masked_form import HISTOGRAM, TOTAL
from umpc.protocols.grid.operators.triples import TripleForm
from umpc.protocols.registry import checked, protocol_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc.study.settings import HONEST, LYING_NODES
from umpc.study.sizes import Sizes

BEYOND = {
    "variance",
    "covariance",
    "clustering_scatter",
    "ranking_hinge",
    "contrastive_loss",
    "theil_sen",
}
"""Statistics whose tables are no counts of records by their fields."""
NAMES = [name for name in TAKEN if name not in BEYOND]
TRIPLES = ("spearman_rho", "spearman_rho_b", "vus")
STEPS = {HISTOGRAM, LIST, OPENING, TOTAL, INVERSES, PROOF, STATEMENT, ANSWER}


def verified_study(kernels=KENDALL, nodes: int = 3, **changes) -> Study:
    """A study of the grid whose nodes may lie, by default with hardly any noise."""
    facts = {"x": ("0", "7"), "y": ("0", "7"), "epsilon": LOUD, "adversary": LYING_NODES}
    return checked(grid_study(kernels, nodes, **{**facts, **changes}))


def run_and_check(study: Study, tables, label: str) -> Simulated:
    """A whole study in memory: all sums are the clear ones, and the costs those predicted."""
    run = simulate(study, tables, Entropy(label))
    expected = clear_sums(study, tables, graph_of(study, run.report))
    found = noisy_sums(run.transcript.shares, len(study.kernels), run.attempt.ring)
    assert found == [run.attempt.factor * each for each in expected], label
    check_cost(run)
    return run


def check_cost(run: Simulated) -> None:
    """Prediction is measurement, by each node and in all."""
    report, sent = run.report, run.transcript
    cost = protocol_of(run.attempt.study).cost(run.attempt)
    assert report.rounds == report.rounds_predicted == cost.rounds == 4
    assert report.bytes_online == report.bytes_online_predicted == cost.bytes_online
    assert report.bytes_offline == report.bytes_offline_predicted == cost.bytes_offline
    frames = sent.online + sent.told
    online = sum(len(encode_frame(frame).SerializeToString()) for *_, frame in frames)
    assert online + sum(map(len, sent.shares)) == cost.bytes_online
    steps = {frame.step for *_, frame in frames}
    # bits of tables have no inverses
    assert steps == STEPS or steps == STEPS - {INVERSES}
    for place, node in enumerate(run.attempt.study.nodes):
        own: Counter[tuple[str, int]] = Counter()
        for sender, receiver, frame in frames:
            if node.name in (sender, receiver):
                own[frame.step, frame.round] += len(encode_frame(frame).SerializeToString())
        predicted = bytes_by_step(run.attempt, place)
        assert own == {step: size for step, size in predicted.items() if size}


@pytest.mark.parametrize("nodes", [2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_statistics_of_the_library_are_the_clear_ones(name, nodes):
    """Tau-b and rho-b have three sums over one table, rho-b of triples; the AUC has two classes."""
    study = lying(library_study_of(name, nodes))
    label = f"verified {name} {nodes}"
    run_and_check(study, tables_of(study, "ties", counts_of(name, nodes), label), label)


@pytest.mark.parametrize(
    "counts", [(1, 1), (2, 0), (0, 0, 2), (1, 0, 12), (9, 10), (40, 3, 1), (0, 70)]
)
@pytest.mark.parametrize("kernel", [KENDALL, "a.x == b.x"])
def test_nodes_with_no_one_and_many_records(kernel, counts):
    """Wires have three calls for nine records, and seven for ten."""
    study = verified_study(kernel, len(counts))
    tables = random_tables(counts, f"counts {counts}", high=7)
    run_and_check(study, tables, f"counts {counts}")


@pytest.mark.parametrize("kernel", [KENDALL, "a.x == b.x"])
@pytest.mark.parametrize("counts", [(40, 31, 50), (90, 3, 0, 60)])
def test_bits_of_tables_and_lists_of_records_release_one_value(kernel, counts):
    """Records of a small domain, once with bounds so wide that a list takes fewer bytes."""
    tables = random_tables(counts, f"forms {counts}", high=3)
    found, widths = [], []
    for high in ("3", "511"):
        bounds = {"x": ("0", high), "y": ("0", high)}
        run = run_and_check(verified_study(kernel, len(counts), **bounds), tables, "forms")
        found.append(run.report.estimate)
        widths.append([shape.width for shape in shapes_of(run.attempt)])
    assert found[0] == found[1]
    assert widths[0][0] > 0 and not any(widths[1])


def test_values_and_places_of_a_proof_are_as_few_as_delta_counts():
    """m + 2N ≤ 5n + 8 in both forms. From 8 records on, m < 3n and N < 2·√m + 2 suffice."""
    for records in range(5000):
        # the most cells of which bits take fewer bytes
        cells = max(0, 3 * records - 1) // max(1, records.bit_length())
        for shape in (ProofShape(records), ProofShape.of(max(1, cells), records)):
            assert shape.products + 2 * shape.places <= 5 * records + 8
            assert shape.products < max(1, 3 * records) and shape.places < 2 * records + 5


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 9), max_size=40), st.integers(0, 3), st.randoms())
def test_both_forms_say_one_number_of_the_lookup(places, spare, source):
    """Bits of any width that holds the counts, and the list, at a random X."""
    cells, width = 10, len(places).bit_length() + spare
    x = np.array([source.randrange(field.P), source.randrange(1, field.P)], dtype=np.uint64)
    found = []
    for shape in (ProofShape(len(places)), ProofShape(cells * width, width)):
        values = values_of(shape, np.array(places, dtype=np.int64))
        assert len(values) == shape.products
        inverse = inverses(x, values[: shape.inverted])
        found.append(looked_up(shape, x, values, inverse).tolist())
    assert found[0] == found[1]


def test_all_records_in_one_cell():
    study = verified_study("a.x * b.x * (a.x == b.x)")
    tables = [{"x": np.full(count, 7)} for count in (5, 30, 1)]
    run = run_and_check(study, tables, "one cell")
    assert run.report.estimate == 49


def test_two_public_classes_of_which_a_node_may_have_one_only():
    study = verified_study(AUC, sampling="two_sample")
    tables = [
        table([1, 2, 7], [0] * 3, [0, 0, 0]),
        table([], [], []),
        table([0, 2, 5, 6], [0] * 4, [1, 0, 1, 1]),
    ]
    keys = {f.name for f in study.fields}
    run_and_check(study, [{k: t[k] for k in keys} for t in tables], "classes")


def test_records_in_bins():
    """The result is the clear one of all records in their bins."""
    bins = (FieldBins("x", cuts=("2", "5")), FieldBins("y", 2))
    study = verified_study(bins=bins)
    tables = random_tables((4, 1, 6), "bins", high=7)
    run = simulate(study, tables, Entropy("bins"))
    coarse = [table(np.digitize(t["x"], [2, 5]), np.digitize(t["y"], [4])) for t in tables]
    (expected,) = clear_sums(study, coarse, graph_of(study, run.report))
    (found,) = noisy_sums(run.transcript.shares, 1, run.attempt.ring)
    assert found == 2 * expected
    check_cost(run)


def test_small_noise_is_whole_and_doubled():
    study = verified_study(epsilon="1")
    run = simulate(study, random_tables((3, 4, 2), "noise", high=7), Entropy("noise"))
    (found,) = noisy_sums(run.transcript.shares, 1, run.attempt.ring)
    assert found % 2 == 0
    check_cost(run)


def test_noise_is_that_of_honest_nodes():
    """Each node's noise is calibrated as in grade honest, because every table is proved."""
    tables = random_tables((3, 4, 2), "grades", high=7)
    reports = [
        simulate(
            verified_study(epsilon="1", adversary=grade, max_colluding=2), tables, Entropy("grades")
        ).report
        for grade in (HONEST, LYING_NODES)
    ]
    assert reports[0].noise_std == reports[1].noise_std > 0
    assert reports[1].noise_std_if_honest in (None, reports[1].noise_std)


# --- views ----------------------------------------------------------------------------------------


def frames_of(run: Simulated):
    """All frames without their payloads, in their order."""
    sent = run.transcript
    return [
        (sender, receiver, frame.key, frame.count, frame.width, len(frame.payload))
        for sender, receiver, frame in sent.offline + sent.online + sent.told
    ]


@pytest.mark.parametrize("counts", [(3, 0, 11), (3, 2000, 11)])
def test_frames_of_all_data_have_the_same_sizes_and_order(counts):
    """Also where a node sends bits of its table."""
    study = lying(library_study_of("kendall_tau_b", 3))
    kinds = ("random", "ties", "bounds", "all equal")
    sets = [tables_of(study, kind, counts, "views") for kind in kinds]
    found = [frames_of(simulate(study, each, Entropy("views"))) for each in sets]
    assert all(each == found[0] for each in found)


def words_of(run: Simulated, step: str) -> np.ndarray:
    """The words of node-0's frames of a step; of the answer those of its part about node-0."""
    frames = run.transcript.online if step != ANSWER else run.transcript.told
    own = [f for s, to, f in frames if f.step == step and f.key[2] == (0,) and "node-0" in (s, to)]
    return cells_of(own, 64)


VIEWED = (HISTOGRAM, LIST, INVERSES, PROOF, ANSWER)
RUNS = 60


@pytest.mark.parametrize("records", [1, 3])
def test_what_a_node_says_is_uniform_and_one_law_for_two_tables(records):
    """The low bits of words of each message. All records of node-0 are in one cell or another.

    It sends a list of one record, and the bits of four cells for three.
    """
    study = verified_study(x=("0", "1"), y=("0", "1"))
    others = (table([1], [0]), table([0], [1]))
    steps = VIEWED if records == 1 else [step for step in VIEWED if step != INVERSES]
    samples = []
    for number in range(2):
        mine = table([number] * records, [number] * records)
        entropy = Entropy(f"verified views {records} {number}")
        runs = [simulate(study, [mine, *others], entropy) for _ in range(RUNS)]
        assert (shapes_of(runs[0].attempt)[0].width > 0) == (records > 1)
        samples.append({step: np.array([int(words(r, step)) & 7 for r in runs]) for step in steps})
    for step in steps:
        p = homogeneity(samples[0][step], samples[1][step])
        assert p > ALPHA, f"{step} tells the records apart: p = {p:.1e}"
        p = min(uniformity(sample[step], 8) for sample in samples)
        assert p > ALPHA, f"{step} is not uniform: p = {p:.1e}"


def words(run: Simulated, step: str) -> int:
    """The word of a message in which node-0's record would show without a mask."""
    if step == HISTOGRAM:
        sent = run.transcript.online
        return int(cells_of([f for s, _, f in sent if (s, f.step) == ("node-0", step)], 64)[0])
    return int(words_of(run, step)[0])


def test_no_secret_is_shown():
    run = simulate(verified_study(), random_tables((2, 2, 2), "shown"), Entropy("shown"))
    shown = [run.nodes[0], run.nodes[0].table, run.nodes[0].table.transcript.said[0]]
    assert all("redacted" in repr(each) for each in shown)


# --- order of steps -------------------------------------------------------------------------------


def test_a_node_says_everything_once_and_makes_its_shares_once():
    run = VerifiedRun(verified_study(), random_tables((2, 3, 1), "once")).up_to_answer()
    (node, *_) = run.tables
    with pytest.raises(LocalProtocolError):
        list(node.masked())
    run.confirm()
    with pytest.raises(LocalProtocolError, match="shares were made"):
        node.confirm(run.signatures)
    assert run.finish().estimate is not None


def test_nothing_is_signed_before_the_proof_has_left():
    run = VerifiedRun(verified_study(), random_tables((2, 3, 1), "early")).prepare().count()
    run.up().down()
    with pytest.raises(LocalProtocolError, match="after this node's proof has left"):
        run.tables[0].sign()


# --- refusals -------------------------------------------------------------------------------------

WIDE = " + ".join(
    f"({p}.x + {p}.y < {q}.x + {q}.y) * ({p}.x + {p}.y < {r}.x + {r}.y)"
    for p, q, r in ("abc", "bca", "cab")
)
SKEW = "abs(a.x + a.y - b.x - b.y) * (a.x == b.x)"
REFUSED = [
    ({"kernels": SKEW}, r"\(4 \(x\) × 7 \(x \+ y\)\) a cell may be that of no record"),
    ({"kernels": "a.x * b.x"}, "records add up values"),
    ({"kernels": "(a.x - b.x) * (a.y - b.y)"}, "records add up values"),
    ({"nodes": 1}, "takes two nodes or more"),
    ({"preprocessing": "none", "dealer": None}, "needs a dealer"),
    ({"noise": "in_mpc"}, 'needs noise = "distributed"'),
    ({"noise": "skellam", "delta": "1e-9"}, 'needs noise = "distributed"'),
    ({"levels": 2}, "takes no levels"),
    ({"kernels": TRIPLE, "degree": 3, "x": ("0", "9")}, "records add up values"),
    ({"kernels": WIDE, "degree": 3}, r"\(7 \(x \+ y\)\) a cell may be that of no"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED)
def test_a_setting_without_a_promise_is_refused_with_what_to_take(changes, reason):
    facts = {"adversary": LYING_NODES, **changes}
    told = f'(?s){reason}.*take adversary = "honest"'
    assert_refused(grid_study(**facts), StudyError, told)


def test_power_a_cell_of_no_record_has_values_beyond_the_kernels_range():
    """So a node that lists such cells would see honest records weigh more than noise covers."""
    study = grid_study(SKEW)
    (kernel,), grid = study.parsed_kernels, grid_of(study)
    rows = [grid.forms[0].apply(row) for row in np.eye(grid.cells, dtype=np.uint64)]
    assert (np.array(rows).view(np.int64).max(), kernel.magnitude_units) == (6, 3)


@pytest.mark.parametrize("name", NAMES)
def test_matrices_of_tables_that_are_taken_stay_in_the_kernels_range(name):
    study = checked(lying(library_study_of(name, 2)))
    grid = grid_of(study)
    for form, kernel in zip(grid.forms, study.parsed_kernels, strict=True):
        if isinstance(form, TripleForm):
            continue  # below
        rows = [form.apply(row) for row in np.eye(grid.cells, dtype=np.uint64)]
        assert np.abs(np.array(rows).view(np.int64)).max() <= kernel.magnitude_units


@pytest.mark.parametrize("name", TRIPLES)
def test_forms_of_triples_stay_in_the_kernels_range_and_their_rows_in_their_bound(name):
    """Three records in any cells are a triple of the domain."""
    study = checked(lying(library_study_of(name, 2)))
    grid, rng = grid_of(study), np.random.default_rng(5)
    for each, kernel in zip(grid.forms, study.parsed_kernels, strict=True):
        form = each.over(PRIME)
        for cells in rng.integers(0, grid.cells, (300, 3)):
            table = np.bincount(cells, minlength=grid.cells).astype(np.uint64)
            six = PRIME.decode(form.value(table) + PRIME.inner(form.diagonal(), table))
            assert six % 6 == 0 and abs(six) <= 6 * kernel.magnitude_units
        arms = [arm for product in form.products for arm in (product.first, product.second)]
        for arm in (*arms, form.twice):
            for matrix in (arm.forward, arm.back):
                columns = [matrix.apply(row) for row in np.eye(grid.cells, dtype=np.uint64)]
                rows = np.abs(np.array(columns).view(np.int64)).sum(axis=0)
                assert rows.max() <= matrix.growth <= form.growth


@pytest.mark.parametrize("name", sorted(BEYOND))
def test_statistics_without_such_a_table_are_refused_with_what_to_take(name):
    study = lying(library_study_of(name, 2))
    told = 'nothing has it where nodes may lie; take adversary = "honest" and backend = "shared"'
    with pytest.raises(StudyError, match=told):
        checked(study)


def test_a_sum_near_half_of_p_is_refused():
    """The least number of records at which twice the sum, with its noise, may pass p/2."""
    study = verified_study("abs(a.x - b.x) * 1000000000000 + (a.x == b.x)", x=("0", "7"))

    def bound(records: int) -> int:
        sizes = Sizes(study, records, holders=3)
        (noise,), (kernel,) = noise_of(sizes), study.parsed_kernels
        return 2 * (sizes.edges * kernel.magnitude_units + noise.tail_bound())

    fits, wraps = 2, 1 << 12
    while wraps - fits > 1:
        half = (fits + wraps) // 2
        fits, wraps = (half, wraps) if bound(half) <= field.P // 2 else (fits, half)
    assert ring_of(Sizes(study, fits, holders=3)).bits == 64
    with pytest.raises(RangeError, match=r"narrow the fields' bounds.*backend = \"shared\""):
        ring_of(Sizes(study, wraps, holders=3))


def test_the_largest_sum_does_not_wrap():
    """All records at the bound: twice the sum is more than 3/4 of p/2."""
    study = verified_study(
        "(a.x * b.x * 1000000000000000 + 1) * (a.x == b.x)", nodes=2, x=("0", "7")
    )
    tables = [{"x": np.full(9, 7)}, {"x": np.full(4, 7)}]
    run = VerifiedRun(study, tables).up_to_answer().confirm()
    found = run.attempt.ring.decode(sum(table.shares[0] for table in run.tables))
    assert found == 2 * 78 * (49 * 10**15 + 1)
    assert Fraction(found, field.P // 2) > Fraction(3, 4)


CUBES = "(a.x * b.x * c.x * 50000000000000 + 1) * (a.x == b.x) * (a.x == c.x)"


def test_the_largest_sum_of_triples_does_not_wrap():
    """All records at the bound: six times the sum is more than 3/4 of p/2."""
    study = verified_study(CUBES, nodes=2, x=("0", "7"), degree=3)
    tables = [{"x": np.full(6, 7)}, {"x": np.full(3, 7)}]
    run = VerifiedRun(study, tables).up_to_answer().confirm()
    found = run.attempt.ring.decode(sum(table.shares[0] for table in run.tables))
    assert found == 6 * 84 * (343 * 5 * 10**13 + 1)
    assert 1 > Fraction(found, 2**63) > Fraction(3, 4)
    with pytest.raises(RangeError, match="6 times the sum over all sets"):
        ring_of(Sizes(study, 12, holders=2))


def test_operators_of_triples_that_may_leave_a_word_are_refused():
    large = CUBES.replace("50000000000000", "4" + "0" * 15)
    with pytest.raises(RangeError, match="a weight or a row of the grid's operators may reach"):
        verified_study(large, nodes=2, x=("0", "7"), degree=3)


def test_lists_that_would_fill_every_nodes_memory_are_refused():
    study = verified_study("a.x * b.x * (a.x == b.x)")
    side = protocol_of(study).coordinator(study, lambda certificate: None)
    sizes = [Sized(MOST_RECORDS, 0), Sized(1, 0), Sized(0, 0)]
    with pytest.raises(RangeError, match=r"24 bytes for each record.*at most 33554432"):
        side.check_sizes(sizes)


class Sized:
    """A member of whom only the number of records counts."""

    def __init__(self, records: int, first_class: int):
        self.records, self.first_class = records, first_class
