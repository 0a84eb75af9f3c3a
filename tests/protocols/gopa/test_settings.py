"""umpc.protocols.gopa.settings: what a study of `gopa` may say, refused with what to write, by both doors."""

from __future__ import annotations

import pytest

from tests.support.gopa import gopa_study
from tests.support.protocols import with_facts
from tests.support.studies import KENDALL, make_study
from umpc.errors import StudyError
from umpc.protocols.registry import checked, decode_study
from umpc.study.document import Study
from umpc.study.parts import Participant

GOPA = gopa_study(3)
MANY = tuple(Participant(f"node-{i}", f"node-{i}:1") for i in range(65))
REFUSED = [
    ({"edges": "2n"}, 'edges of "gopa" is "all".*leave edges out, got \'2n\''),
    ({"noise": "distributed"}, 'noise of "gopa" is "gopa".*got \'distributed\''),
    ({"noise": "local"}, 'noise of "gopa" is "gopa"'),
    ({"backend": "shared"}, 'backend of "gopa" is "none"'),
    ({"preprocessing": "dealer"}, 'preprocessing of "gopa" is "none"'),
    ({"dealer": Participant("dealer", "x:1")}, "\"gopa\" has no dealer; leave 'dealer' out"),
    ({"nodes": MANY[:1], "max_colluding": 0}, "for 2 to 64 nodes, .*; got 1"),
    ({"nodes": MANY}, "got 65"),
    ({"delta": ""}, "takes a delta between 0 and 1, got ''; a usual value is 1e-9"),
    ({"delta": "0"}, "got '0'"),
    ({"delta": "1"}, "got '1'"),
    ({"delta": "-1e-9"}, "got '-1e-9'"),
    ({"delta": "some"}, "delta must be a number"),
    (
        {"degree": 2, "kernels": (KENDALL,)},
        "mean of one kernel over single records.*over sets of 2 record",
    ),
    ({"estimator": "total"}, "mean of one kernel over single records.*the total of 1 sum"),
    ({"estimator": "ratio", "kernels": ("a.x", "a.y")}, "the ratio of 2 sum"),
    ({"levels": 2}, 'levels go with "bell-auc"; leave levels = 2 out of "gopa"'),
    ({"rounding": "randomised"}, 'leave them out of "gopa"'),
    ({"max_colluding": 3}, "max_colluding must be between 0 and 2"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_gopa_cannot_be_is_refused_by_both_doors(changes, message):
    for door in (Study.check, lambda one: decode_study(one.encode())):
        with pytest.raises(StudyError, match=message):
            door(with_facts(GOPA, **changes))


def test_its_noise_is_no_other_protocols():
    with pytest.raises(
        StudyError,
        match='noise of "u-mpc" must be one of distributed, in_mpc, skellam, binomial, got',
    ):
        checked(make_study(noise="gopa"))


@pytest.mark.parametrize("nodes", [2, 64])
def test_what_is_possible_survives_its_bytes(nodes):
    for study in (
        gopa_study(nodes, colluding=nodes - 1),
        gopa_study(nodes, colluding=0, delta="1e-5"),
    ):
        assert decode_study(study.encode()) == study and study.one_message and not study.asks
