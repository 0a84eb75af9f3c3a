"""`gopa`: the protocol object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from umpc.dp.events import ConcentratedEvent, Event
from umpc.protocols.base.one_message_protocol import OneMessageProtocol
from umpc.protocols.base.promise import PromiseTerms
from umpc.protocols.base.protocol import Line
from umpc.study.document import Study
from umpc.study.settings import ADVERSARIES, Settings
from umpc.study.sizes import Sizes
from umpc_papers.gopa.messages import GopaMessages, gopa_messages
from umpc_papers.gopa.node import GopaNode
from umpc_papers.gopa.settings import GopaSettings, check_settings, graph_of

USUAL_DELTA = "1e-9"


class GopaProtocol(OneMessageProtocol):
    """A mean over single records, under noise that cancels between nodes."""

    settings: type[Settings] = GopaSettings
    adversaries = ADVERSARIES

    def check(self, study: Study) -> None:
        check_settings(study)

    def describe(self, study: Study) -> Iterator[Line]:
        if study.settings_as(GopaSettings).neighbours:
            shared = [len(others) for others in graph_of(study)]
            yield "noise", f"a node shares it with {min(shared)} to {max(shared)} others"

    def released(self, terms: PromiseTerms) -> str:
        return "the noisy sum of every node"

    def describe_noise(self, noise: str) -> str:
        return "discrete Gaussian; the nodes' shared noise cancels, their own remains"

    def events(self, sizes: Sizes) -> tuple[Event, ...]:
        return self.known_events(sizes.study)

    def known_events(self, study: Study) -> tuple[Event, ...]:
        return (ConcentratedEvent(self.messages(study).noise.rho),)

    def messages(self, study: Study) -> GopaMessages:
        return gopa_messages(study)

    def node_class(self, study: Study) -> type[GopaNode]:
        return GopaNode

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        return {"delta": USUAL_DELTA}
