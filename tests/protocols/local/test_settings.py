"""umpc.protocols.local.settings: what a one-message study may say, refused with what to write, by both doors."""

from __future__ import annotations

import pytest

from tests.support.local import bins, local_study
from tests.support.protocols import with_facts
from tests.support.shuffled import shuffled_study
from tests.support.studies import AUC, GINI, KENDALL, make_study
from umpc.errors import KernelError, StudyError
from umpc.protocols.local.settings import described, size_of, usual_bins, with_usual_bins
from umpc.protocols.registry import decode_study
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Participant

SHUFFLED, THREE = (
    shuffled_study(),
    tuple(Participant(name, "x:1") for name in ("one", "two", "three")),
)
LDP, BELL_AUC = local_study("bell-ldp"), local_study("bell-auc")
TIMES_TWO = f"({AUC}) * 2"
REFUSED = [
    (LDP, {"edges": "2n"}, 'edges of "bell-ldp" is "all".*leave edges out, got \'2n\''),
    (LDP, {"noise": "distributed"}, 'noise of "bell-ldp" is "local".*got \'distributed\''),
    (LDP, {"backend": "shared"}, 'backend of "bell-ldp" is "none"'),
    (LDP, {"preprocessing": "dealer"}, 'preprocessing of "bell-ldp" is "none"'),
    (LDP, {"delta": "1e-9"}, 'delta of "bell-ldp" is ""'),
    (
        LDP,
        {"dealer": Participant("dealer", "x:1")},
        "\"bell-ldp\" has no dealer; leave 'dealer' out",
    ),
    (LDP, {"levels": 4}, 'levels go with "bell-auc"; leave levels = 4 out'),
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
    (LDP, {"estimator": "total"}, "mean of one kernel.*the total of 1 sum"),
    (
        BELL_AUC,
        {"protocol": "bell-ldp", "levels": 0, "bins": bins(x=2)},
        'without classes.*"two_sample"',
    ),
    (
        LDP,
        {"bins": ()},
        r"bins for each field of the kernel, which are x, y; got bins for none; write under \[bins\]",
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
        {"bins": bins(x=2)},
        'go with "bell-ldp", "ghazi-ldp", "ghazi-rounds" and "ghazi-shuffle"; leave them out',
    ),
    (BELL_AUC, {"rounding": "randomised"}, "bins and rounding go with"),
    (
        BELL_AUC,
        {"kernels": (TIMES_TWO,)},
        'computes statistic = "auc" of one field, with a public label',
    ),
    (BELL_AUC, {"kernels": ("a.x * b.x",)}, 'computes statistic = "auc"'),
    (BELL_AUC, {"kernels": (AUC.replace("b.x", "b.y"),)}, 'computes statistic = "auc"'),
    (BELL_AUC, {"estimator": "total"}, 'computes statistic = "auc"'),
    (BELL_AUC, {"sampling": "balanced", "kernels": (KENDALL,)}, 'computes statistic = "auc"'),
    (
        make_study(),
        {"noise": "local"},
        'noise of "u-mpc" must be one of distributed, in_mpc, skellam, binomial',
    ),
    (make_study(), {"backend": "none"}, "backend must be one of shared, garbled"),
    (make_study(), {"bins": bins(x=2)}, 'leave them out of "u-mpc"'),
    (make_study(), {"levels": 2}, 'out of "u-mpc"'),
    (
        make_study(),
        {"shufflers": THREE[:2]},
        'shufflers go with "ghazi-shuffle"; leave them out of "u-mpc"',
    ),
    (LDP, {"shufflers": THREE[:2]}, 'leave them out of "bell-ldp"'),
    (SHUFFLED, {"shufflers": ()}, r"exactly two shufflers.*got 0: write two \[\[shufflers\]\]"),
    (SHUFFLED, {"shufflers": THREE[:1]}, "exactly two shufflers.*got 1"),
    (SHUFFLED, {"shufflers": THREE}, "exactly two shufflers.*got 3"),
    (SHUFFLED, {"shufflers": (THREE[0], THREE[0])}, "two participants are named 'one'"),
    (
        SHUFFLED,
        {"shufflers": (THREE[0], Participant("node-0", "x:1"))},
        "two participants are named 'node-0'",
    ),
    (SHUFFLED, {"shufflers": (THREE[0], Participant("No", "x:1"))}, "lower-case letters"),
    (SHUFFLED, {"noise": "local"}, 'noise of "ghazi-shuffle" is "shuffled"'),
    (SHUFFLED, {"noise": "distributed"}, 'noise of "ghazi-shuffle" is "shuffled"'),
    (LDP, {"noise": "shuffled"}, 'noise of "bell-ldp" is "local"'),
    (
        make_study(),
        {"noise": "shuffled"},
        'noise of "u-mpc" must be one of distributed, in_mpc, skellam, binomial',
    ),
    (SHUFFLED, {"delta": "1e-9"}, 'delta of "ghazi-shuffle" is ""'),
    (SHUFFLED, {"edges": "2n"}, 'edges of "ghazi-shuffle" is "all"'),
    (SHUFFLED, {"dealer": THREE[0]}, "has no dealer"),
    (SHUFFLED, {"levels": 2}, "leave levels = 2 out"),
    (SHUFFLED, {"bins": ()}, "takes bins for each field of the kernel"),
]


@pytest.mark.parametrize(
    ("study", "changes", "message"), REFUSED, ids=lambda value: str(value)[:50]
)
def test_what_a_one_message_study_cannot_say_is_refused_by_both_doors(study, changes, message):
    for door in (Study.check, lambda one: decode_study(one.encode())):
        with pytest.raises(StudyError, match=message):
            door(with_facts(study, **changes))


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
        SHUFFLED,
        local_study("ghazi-ldp", 5, bins=bins(y=["1", "3"], x=1)),
        local_study("bell-ldp", rounding="randomised", bins=bins(x=["1", "2"], y=2)),
        local_study("bell-ldp", max_colluding=1),
    ):
        assert decode_study(study.encode()) == study and study.one_message


def test_what_is_usual_is_blind_to_data():
    wide, narrow, job = (
        FieldText("w", "-1", "99"),
        FieldText("n", "0", "1"),
        FieldText.of_categories("j", "abcdefg"),
    )
    assert [usual_bins(field.schema()).count for field in (wide, narrow, job)] == [4, 2, 7]
    study = with_usual_bins(with_facts(LDP, bins=bins(y=["2"])))
    assert study.bins == bins(y=["2"], x=4) and with_usual_bins(make_study()) == make_study()


def test_how_records_become_bins_is_said():
    study = local_study("bell-ldp", rounding="randomised", bins=bins(x=["1", "2"], y=2))
    assert [size_of(entry, study) for entry in study.bins] == [4, 2]
    assert described(study) == "randomised rounding to bins: 4 of 'x' cut at 1, 2, 2 of 'y'"
    assert described(BELL_AUC) == "4 bins of 'x'" and described(make_study()) == ""
