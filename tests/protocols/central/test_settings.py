"""umpc.protocols.central.settings: what a study with a trusted curator may say, refused with what to write, by both doors."""

from __future__ import annotations

import pytest
from umpc.protocols.kinds import NOISES, PROTOCOLS

from tests.support.central import MECHANISMS, central_study
from tests.support.local import bins, local_study
from tests.support.protocols import with_facts
from tests.support.studies import AUC, CLASSES, GINI, KENDALL, TRIPLE, make_study
from umpc.errors import StudyError
from umpc.protocols.central.settings import CENTRAL, usual_edges
from umpc.protocols.registry import decode_study
from umpc.study.document import Study
from umpc.study.parts import Participant

LAPLACE, PART = central_study(), central_study("hajek_subsampled")
REFUSED = [
    (
        LAPLACE,
        {"noise": "distributed"},
        "noise of \"central\" must be one of laplace, coinpress_naive.*'distributed'",
    ),
    (LAPLACE, {"noise": "local"}, 'noise of "central" must be one of'),
    (
        LAPLACE,
        {"backend": "shared"},
        'backend of "central" is "none".*leave backend out, got \'shared\'',
    ),
    (LAPLACE, {"preprocessing": "dealer"}, 'preprocessing of "central" is "none"'),
    (LAPLACE, {"delta": "1e-9"}, 'delta of "central" is ""'),
    (
        LAPLACE,
        {"dealer": Participant("dealer", "x:1")},
        "\"central\" has no dealer; leave 'dealer' out",
    ),
    (
        LAPLACE,
        {"edges": "2n"},
        'edges of noise = "laplace" is "all"; leave edges out, or take one of coinpress_sub',
    ),
    (
        PART,
        {"edges": "all"},
        "over so many independent sets: write edges = \"2n\" or a number, got 'all'",
    ),
    (PART, {"edges": "1p"}, "over so many independent sets.*'1p'"),
    (PART, {"edges": "0"}, "edges must be"),
    (
        LAPLACE,
        {"kernels": (KENDALL, GINI), "estimator": "ratio"},
        "mean of one symmetric kernel.*the ratio of 2 sum",
    ),
    (LAPLACE, {"estimator": "total"}, "mean of one symmetric kernel.*the total of 1 sum"),
    (
        LAPLACE,
        {"kernels": (AUC,), "sampling": "two_sample", "fields": (*LAPLACE.fields, CLASSES)},
        'mean of one symmetric kernel, without classes.*"two_sample"',
    ),
    (LAPLACE, {"kernels": ("2",)}, "this kernel has none"),
    (LAPLACE, {"bins": bins(x=2)}, 'leave them out of "central"'),
    (LAPLACE, {"levels": 2}, 'out of "central"'),
    (
        make_study(),
        {"noise": "laplace"},
        'noise of "u-mpc" must be one of distributed, in_mpc, skellam, binomial',
    ),
    (local_study("bell-ldp"), {"noise": "hajek"}, 'noise of "bell-ldp" is "local"'),
]


@pytest.mark.parametrize(
    ("study", "changes", "message"), REFUSED, ids=lambda value: str(value)[:50]
)
def test_what_it_cannot_say_is_refused_by_both_doors(study, changes, message):
    for door in (Study.check, lambda one: decode_study(one.encode())):
        with pytest.raises(StudyError, match=message):
            door(with_facts(study, **changes))


@pytest.mark.parametrize("noise", MECHANISMS)
def test_what_is_possible_survives_its_bytes(noise):
    for changes in (
        {},
        {"kernels": TRIPLE, "degree": 3},
        {"kernels": "a.x", "degree": 1},
        {"max_colluding": 1},
    ):
        study = central_study(noise, **changes)
        assert decode_study(study.encode()) == study and study.central and study.one_message
    assert noise in NOISES and CENTRAL in PROTOCOLS


def test_other_studies_are_not_central():
    assert not make_study().central and not local_study("bell-ldp").central
    assert [usual_edges(noise) for noise in ("hajek", "hajek_subsampled", None)] == [
        "all",
        "2n",
        "all",
    ]
