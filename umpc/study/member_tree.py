"""Members that a node is shown out of a hash tree, and the checks of what it is shown.

In a study with `members_checked` a node gets the roots over all members and all openings, and the
records of each node, in place of the lists. It then asks for itself, for the nodes that it meets,
and for as many more as the study says, which it draws itself. Each one is shown with its paths
under both roots. The dealer gets the lists, and checks all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from umpc.crypto.hash_tree import is_under
from umpc.crypto.signing import Verify, as_of_now
from umpc.errors import RemoteProtocolError
from umpc.study.attempt import check_openings
from umpc.study.document import Study
from umpc.study.members import check_member, check_signatures
from umpc.study.sizes import Member
from umpc.study.statements import (
    AgreedInShort,
    member_statement,
    members_statement,
    members_tree,
    openings_tree,
)

MOST_SHOWN = 128
"""Most members that are shown at once: below one message's megabyte with any certificates."""


@dataclass(frozen=True)
class ShownMember:
    """One member of a hash tree. signature: its own, of all members."""

    member: Member
    path: bytes = field(repr=False)
    opening: bytes = field(repr=False)
    opening_path: bytes = field(repr=False)
    signature: bytes = field(repr=False)


def show(
    study: Study,
    members: Sequence[Member],
    openings: Sequence[bytes],
    signatures: Sequence[bytes],
    places: Sequence[int],
) -> tuple[ShownMember, ...]:
    """The members at these places, out of complete lists. Raises: IndexError."""
    own, opened = members_tree(study, members), openings_tree(openings)
    return tuple(
        ShownMember(
            members[place],
            own.path(place),
            openings[place],
            opened.path(place),
            signatures[place],
        )
        for place in places
    )


def check_shown(
    study: Study,
    agreed: AgreedInShort,
    places: Sequence[int],
    shown: Sequence[ShownMember],
    verify: Verify,
) -> tuple[bytes, ...]:
    """Check members that were asked for: where they stand, who they are, and what they signed.

    Returns: the nodes' public keys.
    Raises: RemoteProtocolError naming the coordinator; CertificateError.
    """
    relay, now = study.coordinator, as_of_now(verify)
    statement = members_statement(study, agreed.members)
    if len(shown) != len(places):
        raise _refused(study, f"showed {len(shown)} members where {len(places)} were asked for")
    keys = []
    for place, each in zip(places, shown, strict=True):
        _check_place(study, agreed, place, each)
        key = check_member(study.hash, each.member, now, relay, "prepare")
        one = [each.member]
        check_openings(study, one, [each.opening], relay)
        check_signatures("these members", statement, one, [key], [each.signature], relay, "prepare")
        keys.append(key)
    return tuple(keys)


def _check_place(study: Study, agreed: AgreedInShort, place: int, shown: ShownMember) -> None:
    name, count = study.nodes[place].name, len(study.nodes)
    member = shown.member
    if member.name != name or member.classes != agreed.members.counts[place]:
        raise _refused(study, f"showed another name or number of records of {name} than it told")
    leaf = member_statement(study.hash, member)
    if not is_under(agreed.members.root, leaf, place, count, shown.path):
        raise _refused(study, f"showed a member {name} that is not among those it told")
    if not is_under(agreed.openings, shown.opening, place, count, shown.opening_path):
        raise _refused(study, f"showed an opening of {name} that is not among those it told")


def _refused(study: Study, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"{study.coordinator} {what}, so it told two stories; nothing was computed, and the study "
        f"ends",
        culprit=study.coordinator,
        step="prepare",
    )
