"""Studies from flat facts, and the parts of a study's protocol, as tests ask for them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from umpc.errors import EncodingError, StudyError
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.node import NodeSide
from umpc.protocols.registry import PROTOCOLS, checked, decode_study, protocol_of
from umpc.simulation import AUTHORITY
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.study.settings import keys_of
from umpc.study.sizes import ClassCounts, Member, Sizes
from umpc_papers.ghazi_shuffle.messages import shuffle_messages

ONE_MESSAGE = ("bell-ldp", "bell-auc", "ghazi-ldp", "ghazi-rounds", "local-mean")
"""The local protocols: the coordinator gets every node's message."""
OF_CELLS = ("bell-ldp", "ghazi-ldp", "ghazi-rounds", "ghazi-shuffle")
"""The protocols whose records become cells."""
ASKS = "ghazi-rounds"
"""The protocol whose nodes answer a question."""


def flat_study(**facts: Any) -> Study:
    """A study from its own keys and its settings', side by side; `protocol` is "u-mpc" by default.

    A fact that the protocol fixes may be given with its fixed value.
    """
    kind = PROTOCOLS[facts.pop("protocol", "u-mpc")].settings
    own = {key: facts.pop(key) for key in keys_of(kind) if key in facts}
    settings = kind(**own)
    for key in set(facts) - set(Study.__struct_fields__):
        assert facts[key] == getattr(settings, key), f"{kind.__name__} has no {key}"
        del facts[key]
    return Study(settings=settings, **facts)


def one_node_study(fields: Sequence[FieldText], kernels: Sequence[str], **changes: Any) -> Study:
    """A study over all pairs of one node, which `checked` has not seen."""
    return flat_study(
        name="demo",
        statistic="kendall_tau",
        kernels=tuple(kernels),
        fields=tuple(fields),
        epsilon="1",
        edges="all",
        max_colluding=0,
        coordinator="coordinator",
        dealer=Participant("dealer", "dealer:1"),
        nodes=(Participant("node-1", "node-1:1"),),
        **changes,
    )


def used(fields: Sequence[FieldText], kernels: Sequence[str]) -> tuple[FieldText, ...]:
    """The fields that occur in the kernels: a study may have no others."""
    text = " ".join(kernels)
    return tuple(each for each in fields if re.search(rf"\.{re.escape(each.name)}\b", text))


def with_facts(study: Study, **changes: Any) -> Study:
    """The study with other facts; with another protocol, what that protocol lacks is left out.

    With other kernels and no fields, only the fields that these use and the public label stay.
    """
    if "kernels" in changes and "fields" not in changes:
        needed = used(study.fields, changes["kernels"])
        fields = [each for each in study.fields if each in needed or each.public]
        changes["fields"] = tuple(fields)
    own = {key: getattr(study, key) for key in Study.__struct_fields__ if key != "settings"}
    settings = {key: getattr(study.settings, key) for key in keys_of(type(study.settings))}
    protocol = changes.get("protocol", study.protocol)
    if protocol != study.protocol:
        settings = {
            key: settings[key] for key in keys_of(PROTOCOLS[protocol].settings) if key in settings
        }
    return flat_study(**{**own, **settings, "protocol": protocol, **changes})


def make_node(name: str, study: Study, columns: Any, records: int, entropy: Any) -> NodeSide:
    """One node's side of the study's protocol."""
    return protocol_of(study).node(AUTHORITY.credentials(name), study, columns, records, entropy)


def coordinator_of(study: Study) -> CoordinatorSide:
    """The coordinator's side of the study's protocol."""
    return protocol_of(study).coordinator(checked(study), AUTHORITY.verify)


def opened_by(nodes: Sequence[NodeSide], members: Sequence[Member]) -> list[m.Opened]:
    """The nodes' answers to everybody's members."""
    return [m.Opened(node.agree(members), node.sign_members()) for node in nodes]


def begin_all(coordinator: CoordinatorSide, nodes: Sequence[NodeSide], members: Any) -> m.Begin:
    """All nodes up to *prepare*, by the coordinator's messages."""
    begin = coordinator.begin(opened_by(nodes, members))
    for node in nodes:
        node.check_agreed(begin.signatures)
        node.begin(begin.openings)
    return begin


def begun_sides(
    study: Study, tables: Sequence[Any], entropy: Any
) -> tuple[CoordinatorSide, list[NodeSide]]:
    """The coordinator's and all nodes' sides of an attempt that has begun."""
    coordinator = coordinator_of(study)
    nodes = [
        make_node(node.name, study, table, len(next(iter(table.values()))), entropy)
        for node, table in zip(study.nodes, tables, strict=True)
    ]
    agree = coordinator.agree([m.Accepted(study.hash, node.accept()) for node in nodes])
    begin_all(coordinator, nodes, () if agree is None else agree.members)
    return coordinator, nodes


def messages_of(study: Study, counts: Sequence[ClassCounts] = ()) -> Any:
    """The messages of a study whose nodes send one. Args: counts: of every node, for shufflers."""
    if study.shufflers:
        return shuffle_messages(study, counts)
    return protocol_of(study).messages(study)


def noise_of(sizes: Sizes) -> Any:
    """The noise of each sum."""
    return protocol_of(sizes.study).noise(sizes)


def run_own_steps(node: NodeSide) -> None:
    """The work on the node's own records."""
    for _ in node.own_steps():
        pass


def usual(study: Study) -> Study:
    """The study with its protocol's usual values."""
    return protocol_of(study).complete(study)


def assert_refused(study: Study, error: type[Exception], message: str) -> None:
    """The study is refused by both doors, the check and the bytes, with exactly this error."""
    for door in (checked, lambda given: decode_study(given.encode())):
        with pytest.raises(error, match=message) as refusal:
            door(study)
        assert type(refusal.value) is error


def with_setting_in_bytes(study: Study, **entries: Any) -> bytes:
    """The study's bytes with more entries among its settings, in canonical form."""
    document = json.loads(study.encode())
    document["settings"].update(entries)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def assert_not_a_setting(study: Study, key: str, value: Any) -> None:
    """The study's protocol has no such setting, neither in bytes, nor in a file, nor in memory."""
    with pytest.raises(EncodingError, match=f"unknown field `{key}`"):
        decode_study(with_setting_in_bytes(study, **{key: value}))
    refusal = f"`{key}` is not a setting of protocol = '{study.protocol}', which has "
    with pytest.raises(StudyError, match=refusal):
        protocol_of(study).read_settings({key: value}, len(study.nodes), study.epsilon)
    with pytest.raises(StudyError, match=refusal):
        study.replaced(**{key: value})
