"""Nobody goes on unless both aggregators signed the people whom the study counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.people import closed, people_study, with_terms
from tests.support.protocols import begin_all, coordinator_of
from tests.support.studies import Entropy, make_members, random_tables
from umpc.errors import LocalProtocolError, RemoteProtocolError, StudyError
from umpc.protocols.people.in_memory import shared_out
from umpc.protocols.people.terms import SHARE, terms_of
from umpc.protocols.registry import find_protocol, protocol_of
from umpc.simulation import AUTHORITY
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.testing import without

STUDY = people_study()
OWNS = [AUTHORITY.credentials(node.name) for node in STUDY.nodes]
N = 9
COUNTED, SHARES, _ = shared_out(STUDY, random_tables([N], "counted"), OWNS, Entropy("counted"))
SIGNED = bytes.fromhex(terms_of(COUNTED).counted)
OTHER = bytes.fromhex(terms_of(closed(people_study(name="other"), N)).counted)
FALSE = {
    "one aggregator signed twice": SIGNED[:40] + 2 * SIGNED[40:104],
    "signatures exchanged": SIGNED[:40] + SIGNED[104:] + SIGNED[40:104],
    "nobody signed": SIGNED[:40] + bytes(128),
    "another list": SIGNED[:8] + bytes(32) + SIGNED[40:],
    "another number": (N + 1).to_bytes(8, "little") + SIGNED[8:],
    "another study": OTHER,
}
"""Texts that a coordinator may write into the study in place of the signed statement."""
SIGNED_PEOPLE = "both signed the people"


def sides(study, n=N):
    """The coordinator and both aggregators of a study, before they agree."""
    protocol = protocol_of(study)
    nodes = [
        protocol.node(own, study, share, n, Entropy(own.name))
        for own, share in zip(OWNS, SHARES, strict=True)
    ]
    return coordinator_of(study), nodes


def members_of(study, counts=(N, N)):
    return make_members(study, counts)[0]


def keys_of(members):
    return [AUTHORITY.verify(member.certificate).key for member in members]


@pytest.fixture(params=FALSE, ids=lambda name: name)
def false(request):
    """The study with something else than both signed, and its n."""
    data = FALSE[request.param]
    return with_terms(STUDY, counted=data.hex()), int.from_bytes(data[:8], "little")


def refused(study, by):
    with pytest.raises(RemoteProtocolError, match="not both aggregators have signed") as told:
        by()
    assert told.value.culprit == study.coordinator


def test_what_both_signed_goes_through_all_three():
    coordinator, nodes = sides(COUNTED)
    accepted = [m.Accepted(COUNTED.hash, node.accept()) for node in nodes]
    begin_all(coordinator, nodes, coordinator.agree(accepted).members)
    members = members_of(COUNTED)
    find_protocol("people").check_members(COUNTED, members, keys_of(members))


def test_an_aggregator_refuses_what_is_not_signed_before_it_begins(false):
    study, n = false
    _, nodes = sides(study, n)
    members = [node.accept() for node in nodes]
    for node in nodes:
        node.agree(members)
    signatures = [node.sign_members() for node in nodes]
    for node in nodes:
        refused(study, lambda node=node: node.check_agreed(signatures))


def test_the_coordinator_refuses_what_is_not_signed(false):
    study, n = false
    coordinator, nodes = sides(study, n)
    accepted = [m.Accepted(study.hash, node.accept()) for node in nodes]
    refused(study, lambda: coordinator.agree(accepted))


def test_the_dealer_refuses_what_is_not_signed(false):
    study, n = false
    members = members_of(study, (n, n))
    protocol = find_protocol("people")
    refused(study, lambda: protocol.check_members(study, members, keys_of(members)))


def test_power_without_its_check_a_false_list_is_dealt(false):
    study, n = false
    members = members_of(study, (n, n))
    with without(SIGNED_PEOPLE):
        find_protocol("people").check_members(study, members, keys_of(members))


@pytest.mark.parametrize("counts", [(N, N + 1), (N - 1, N)])
def test_an_aggregator_that_says_another_number_is_named(counts):
    members = members_of(COUNTED, counts)
    liar = members[0 if counts[0] != N else 1].name
    accepted = [m.Accepted(COUNTED.hash, member) for member in members]
    checks = (
        lambda: find_protocol("people").check_members(COUNTED, members, keys_of(members)),
        lambda: coordinator_of(COUNTED).agree(accepted),
    )
    for check in checks:
        with pytest.raises(RemoteProtocolError, match=f"both aggregators signed {N}") as told:
            check()
        assert told.value.culprit == liar


def test_power_without_its_check_two_numbers_are_dealt_for():
    members = members_of(COUNTED, (N, N + 1))
    with without("both say how many people"):
        find_protocol("people").check_members(COUNTED, members, keys_of(members))


def test_a_replay_names_who_released_for_another_number():
    good = m.Released(bytes(32), bytes(4), N, 0)
    with pytest.raises(RemoteProtocolError, match="both aggregators signed") as told:
        coordinator_of(COUNTED).replay([good, replace(good, records=N + 1)], Measured())
    assert told.value.culprit == STUDY.nodes[1].name


def test_a_study_that_is_not_closed_yet_is_refused_by_all_three():
    members = members_of(STUDY)
    accepted = [m.Accepted(STUDY.hash, member) for member in members]
    protocol = find_protocol("people")
    checks = (
        lambda: protocol.node(OWNS[0], STUDY, SHARES[0], N, Entropy("open")),
        lambda: protocol.check_members(STUDY, members, keys_of(members)),
        lambda: coordinator_of(STUDY).agree(accepted),
    )
    for check in checks:
        with pytest.raises(StudyError, match="is not closed yet"):
            check()


@pytest.mark.parametrize(("cells", "n"), [(15, N), (16, N - 1)])
def test_a_share_of_other_people_is_refused_at_its_aggregator(cells, n):
    protocol = protocol_of(COUNTED)
    share = {SHARE: SHARES[0][SHARE][:cells]}
    with pytest.raises(LocalProtocolError, match=f"16 cells and {N} people was expected"):
        protocol.node(OWNS[0], COUNTED, share, n, Entropy("other"))
