"""How many people two sites share: all points, both released lists, and the number."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO

import numpy as np

from spec import overlap
from tests.spec.replaying import replay_tests
from tests.spec.studies import study_of
from tests.support.overlap import overlap_study
from umpc.crypto.prg import Stream
from umpc.protocols.overlap.messages import SharedPeople, framed
from umpc.protocols.overlap.settings import AT_BOTH, most_hidden
from umpc.protocols.registry import find_protocol
from umpc.simulation import AUTHORITY

NAMES = ("first", "second")
BEFORE = 64
"""Random bytes of a node for what the specification has elsewhere: its opening and its key."""


def comparison(study, epsilon, people, seeds, sender=0, payload=b""):
    own = study_of(study, NAMES, overlap_study(str(Fraction(*epsilon))))
    nodes = [
        find_protocol("overlap").node(
            AUTHORITY.credentials(name),
            own,
            {AT_BOTH: np.array(texts, dtype=object)},
            len(texts),
            BytesIO(bytes(BEFORE) + Stream(seed).bytes(1 << 16)).read,
        )
        for name, texts, seed in zip(NAMES, people, seeds, strict=True)
    ]
    members = [node.accept() for node in nodes]
    openings = [node.agree(members) for node in nodes]
    sent = []
    for node in nodes:
        node.begin(openings)
        sent.append(b"".join(each.payload for each in node.fields_for(1 - node.index)))
    if payload:
        sent[sender] = payload
    released = []
    for node in nodes:
        node.receive_fields(1 - node.index, framed(sent[1 - node.index]))
        released.append(node.release().share)
    counts = [(0, len(texts)) for texts in people]
    mean = SharedPeople(own).aggregate(released, counts).value
    return {
        "noises": [node.noise for node in nodes],
        "messages": sent,
        "released": released,
        "number": round(mean * sum(map(sum, counts))),
    }


def test_the_specification_has_the_same_ends_of_a_sites_noise():
    for epsilon in ("0.001", "0.3", "2", "30"):
        assert overlap.most_hidden(Fraction(epsilon)) == most_hidden(overlap_study(epsilon))


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "overlap", {"comparison": comparison}
)
