"""umpc_papers.local.settings: the rules of bins and levels, refused by both doors."""

from __future__ import annotations

import pytest

from tests.support.bell import bell_study
from tests.support.local import bins, local_study
from tests.support.protocols import assert_not_a_setting, assert_refused, usual, with_facts
from tests.support.shuffled import shuffled_study
from tests.support.studies import AUC, CLASSES, GINI, KENDALL, make_study
from umpc.errors import KernelError, StudyError
from umpc.protocols.base.bins import read_bins
from umpc.protocols.registry import checked, decode_study, protocol_of
from umpc.study.parts import FieldBins, FieldText
from umpc_papers.local.settings import (
    CellSettings,
    described,
    size_of,
    usual_bins,
    with_usual_bins,
)

LDP, BELL_AUC = local_study("bell-ldp"), local_study("bell-auc")
TIMES_TWO = f"({AUC}) * 2"
WIDER = (*make_study().fields, CLASSES)
REFUSED = [
    (LDP, {"rounding": "up"}, "rounding must be one of simple, randomised, got 'up'"),
    (
        LDP,
        {"degree": 1, "kernels": ("a.x",)},
        "mean of one kernel over all pairs.*over sets of 1 record",
    ),
    (
        LDP,
        {"kernels": (KENDALL, GINI), "estimator": "ratio"},
        "mean of one kernel.*the ratio of 2 sum",
    ),
    (LDP, {"cell_kernel": "mean"}, "cell_kernel must be one of average, midpoint, middle"),
    (
        LDP,
        {"rounding": "randomised", "cell_kernel": "average"},
        'makes points.*write cell_kernel = "middle"',
    ),
    (BELL_AUC, {"levels_by": "both"}, "levels_by must be one of users, budget, got 'both'"),
    (BELL_AUC, {"discarded": "third"}, "discarded must be one of half, zero, got 'third'"),
    (BELL_AUC, {"delta": "1e-9"}, 'share a record.s budget; write levels_by = "budget"'),
    (
        BELL_AUC,
        {"levels_by": "budget", "delta": "2"},
        "delta must be between 0 and 1, got '2'",
    ),
    (LDP, {"estimator": "total"}, "mean of one kernel.*the total of 1 sum"),
    (
        BELL_AUC,
        {"protocol": "ghazi-ldp", "bins": bins(x=2)},
        'without classes.*"two_sample"',
    ),
    (
        LDP,
        {"bins": ()},
        "bins for each field of the kernel, which are x, y; got bins for none; "
        r"write under \[bins\]",
    ),
    (LDP, {"bins": bins(x=2)}, "which are x, y; got bins for x"),
    (LDP, {"bins": bins(x=2, y=2, z=2)}, "which are x, y; got bins for x, y, z"),
    (LDP, {"bins": (*bins(x=2, y=2), *bins(x=3))}, "got bins for x, y, x"),
    (
        LDP,
        {"bins": bins(x=2, y=5)},
        "bins of 'y': 1 to 4 bins are possible for its 4 values, got 5",
    ),
    (LDP, {"bins": bins(x=2, y=0)}, "1 to 4 bins are possible"),
    (LDP, {"bins": bins(x=2, y=-1)}, "either a number of bins or"),
    (LDP, {"bins": (*bins(x=2), FieldBins("y", 2, ("1",)))}, "either a number of bins or"),
    (LDP, {"bins": bins(x=1, y=1)}, "bins make 1 cells in all, 2 to 2048 are possible"),
    (
        LDP,
        {"bins": bins(x=2, y=["2", "1"])},
        "cut points must ascend, above 0 and up to 3; got 2, 1",
    ),
    (LDP, {"bins": bins(x=2, y=["1", "1"])}, "must ascend"),
    (LDP, {"bins": bins(x=2, y=["0"])}, "must ascend, above 0"),
    (LDP, {"bins": bins(x=2, y=["4"])}, "must ascend, above 0 and up to 3; got 4"),
    (
        LDP,
        {"bins": bins(x=2, y=["1/2"])},
        "the cut point 1/2 is not a multiple of the resolution 1; write one",
    ),
    (LDP, {"bins": bins(x=2, y=["one"])}, "bins of 'y': a cut point must be a number"),
    (LDP, {"rounding": "randomised", "bins": bins(x=2, y=1)}, "2 to 4 bins are possible"),
    (LDP, {"rounding": "randomised", "bins": bins(x=2, y=["3"])}, "must ascend"),
    (
        BELL_AUC,
        {"levels": 0},
        "become 2.levels bins; write levels = 4 or another number of 1 to 20, got 0",
    ),
    (BELL_AUC, {"levels": 21}, "1 to 20, got 21"),
    (
        BELL_AUC,
        {"kernels": (TIMES_TWO,)},
        'computes statistic = "auc" of one field, with a public label',
    ),
    (BELL_AUC, {"kernels": ("a.x * b.x",)}, 'computes statistic = "auc"'),
    (
        BELL_AUC,
        {"kernels": (AUC.replace("b.x", "b.y"),), "fields": WIDER},
        'computes statistic = "auc"',
    ),
    (BELL_AUC, {"estimator": "total"}, 'computes statistic = "auc"'),
    (
        BELL_AUC,
        {"sampling": "balanced", "kernels": (KENDALL,), "fields": WIDER},
        'computes statistic = "auc"',
    ),
]


@pytest.mark.parametrize(
    ("study", "changes", "message"), REFUSED, ids=lambda value: str(value)[:50]
)
def test_what_a_one_message_study_cannot_say_is_refused_by_both_doors(study, changes, message):
    assert_refused(with_facts(study, **changes), StudyError, message)


ALL_CELLS = [local_study(protocol) for protocol in ("bell-ldp", "ghazi-ldp", "ghazi-rounds")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("edges", "2n"),
        ("noise", "distributed"),
        ("noise", "shuffled"),
        ("backend", "shared"),
        ("preprocessing", "dealer"),
        ("delta", "1e-9"),
        ("dealer", {"name": "dealer", "address": "x:1"}),
        ("shufflers", [{"name": "one", "address": "x:1"}, {"name": "two", "address": "x:1"}]),
    ],
)
def test_no_local_study_has_settings_of_edges_or_helpers(key, value):
    for study in ALL_CELLS if key == "delta" else (*ALL_CELLS, BELL_AUC):
        assert_not_a_setting(study, key, value)


def test_studies_of_cells_have_no_levels_and_an_auc_has_no_bins():
    for study in ALL_CELLS:
        assert_not_a_setting(study, "levels", 4)
    assert_not_a_setting(BELL_AUC, "bins", [{"field": "x", "count": 2, "cuts": []}])
    assert_not_a_setting(BELL_AUC, "rounding", "randomised")


def test_their_other_facts_are_fixed():
    for study in (*ALL_CELLS, BELL_AUC):
        assert (study.edges, study.noise, study.delta) == ("all", "local", "")
        assert (study.backend, study.preprocessing, study.dealer) == ("none", "none", None)
        assert study.shufflers == ()


@pytest.mark.parametrize("protocol", ["u-mpc", "bell-2pc"])
def test_other_protocols_have_neither_bins_nor_levels(protocol):
    study = make_study() if protocol == "u-mpc" else bell_study()
    assert_not_a_setting(study, "bins", [{"field": "x", "count": 2, "cuts": []}])
    assert_not_a_setting(study, "rounding", "randomised")
    assert_not_a_setting(study, "levels", 2)


def test_a_kernel_that_is_not_symmetric_and_categories_with_cuts_are_refused():
    with pytest.raises(KernelError, match="not symmetric"):
        local_study("bell-ldp", kernels="a.x")
    job = FieldText.of_categories("job", "abc")
    with pytest.raises(
        StudyError, match="categories have no order, so no cut points; write their number, 3"
    ):
        local_study("bell-ldp", kernels="a.job == b.job", fields=(job,), bins=bins(job=["1"]))


def test_what_is_possible_survives_its_bytes():
    for study in (
        LDP,
        BELL_AUC,
        local_study("ghazi-ldp", 5, bins=bins(y=["1", "3"], x=1)),
        local_study("bell-ldp", rounding="randomised", bins=bins(x=["1", "2"], y=2)),
        local_study("bell-ldp", max_colluding=1),
    ):
        assert decode_study(study.encode()) == study


def test_usual_bins_are_blind_to_data():
    wide = FieldText("w", "-1", "99", whole=True)
    narrow = FieldText("n", "0", "1", whole=True)
    job = FieldText.of_categories("j", "abcdefg")
    assert [usual_bins(field.schema()).count for field in (wide, narrow, job)] == [4, 2, 7]


def test_fields_without_bins_get_the_usual_ones_and_other_protocols_get_none():
    study = with_usual_bins(with_facts(LDP, bins=bins(y=["2"])))
    assert study.settings_as(CellSettings).bins == bins(y=["2"], x=4)
    assert usual(make_study()) == make_study() and usual(BELL_AUC) == BELL_AUC


def test_how_records_become_bins_is_said():
    study = local_study("bell-ldp", rounding="randomised", bins=bins(x=["1", "2"], y=2))
    settings = study.settings_as(CellSettings)
    assert [size_of(entry, settings.rounding) for entry in settings.bins] == [4, 2]
    words = "randomised rounding to bins: 4 of 'x' cut at 1, 2, 2 of 'y'"
    assert described(study) == words
    assert dict(protocol_of(study).describe(study)) == {"bins": words}
    assert dict(protocol_of(BELL_AUC).describe(BELL_AUC)) == {"bins": "4 bins of 'x'"}
    assert dict(protocol_of(make_study()).describe(make_study())) == {}


# --- bins in a file -------------------------------------------------------------------------------


def test_a_table_of_bins_is_read_as_the_document_has_it():
    entries = {"bins": {"x": 3, "y": ["1", 2]}, "rounding": "simple"}
    assert read_bins(entries) == {
        "bins": [{"field": "x", "count": 3}, {"field": "y", "cuts": ["1", "2"]}],
        "rounding": "simple",
    }
    assert read_bins({"rounding": "simple"}) == {"rounding": "simple"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (4, "`bins`: a table was expected, and a whole number came"),
        ([{"field": "x"}], "`bins`: a table was expected, and a list came"),
        ({"x": "4"}, "`bins.x`: a whole number or a list was expected, and a text"),
        ({"x": True}, "`bins.x`: .* and true or false came"),
        ({"x": {}}, "`bins.x`: .* and a table came"),
    ],
    ids=str,
)
def test_a_table_of_other_values_is_refused(table, message):
    with pytest.raises(StudyError, match=message):
        read_bins({"bins": table})


ALIKE = "select((a.x < b.x), 1, 1)"
NEXT = "select((abs(a.x - b.x) == 1), 1, 0)"
CONSTANT = [
    local_study("bell-ldp", bins=bins(x=1, y=4)),
    local_study("bell-ldp", bins=bins(x=4, y=1), cell_kernel="middle"),
    local_study("bell-ldp", bins=bins(x=1, y=4), bins_epsilon_share="1/4", y=("0", "30")),
    local_study("ghazi-ldp", bins=bins(x=4, y=1)),
    local_study("ghazi-rounds", bins=bins(x=4, y=1)),
    shuffled_study(bins=bins(x=1, y=4)),
    # 0 and 1 both occur between any two bins, so their middle is 1/2 everywhere.
    local_study("bell-ldp", kernels=NEXT, bins=bins(x=2), cell_kernel="midpoint"),
    checked(make_study(kernels=ALIKE)),
    local_study("bell-ldp", kernels=ALIKE),
]


@pytest.mark.parametrize("study", CONSTANT, ids=lambda study: study.protocol)
def test_a_new_run_is_refused_where_no_record_can_change_the_estimate(study):
    """A released study is still read: its replay costs nothing."""
    assert decode_study(study.encode()) == study
    with pytest.raises(StudyError, match="the estimate would be the same whatever the records are"):
        protocol_of(study).check_new_run(study)


@pytest.mark.parametrize(
    "study",
    [
        LDP,
        BELL_AUC,
        make_study(),
        local_study("bell-ldp", bins=bins(x=2, y=2)),
        local_study("bell-ldp", kernels="abs(a.x - b.x)", bins=bins(x=2), cell_kernel="midpoint"),
        local_study("bell-ldp", kernels="a.x * b.x", bins=bins(x=2)),
    ],
    ids=lambda study: study.protocol,
)
def test_any_other_study_may_run(study):
    protocol_of(study).check_new_run(study)
