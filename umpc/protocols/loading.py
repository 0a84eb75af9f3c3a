"""Protocols by name: umpc's own, and those that a package brings through an entry point.

    [project.entry-points."umpc.protocols"]
    my-protocol = "my_package.protocol:MyProtocol"

Each is loaded when it is first asked for, because a command needs one protocol or two. A process
that serves studies loads all that it may run before it is ready, so that no study waits for that.

Protocols of umpc's own wheel are always there. Those of other packages are code that somebody
installed: a node runs one of them only if its node.toml names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from types import MappingProxyType
from typing import NamedTuple

from umpc.protocols.base.protocol import StudyProtocol

GROUP = "umpc.protocols"
"""The group of entry points."""


class ProtocolPlace(NamedTuple):
    """Where a protocol's class is. chosen_by: the class's own, which nobody loads it to ask for."""

    module: str
    attribute: str
    chosen_by: Mapping[str, str] = MappingProxyType({})


class Protocols(Mapping[str, StudyProtocol]):
    """Name → protocol, in the order of the places; those of entry points follow.

    A protocol is loaded by a look at it, but not by a look at the names.
    """

    def __init__(self, places: Mapping[str, ProtocolPlace]):
        self._own = dict(places)
        self._loaded: dict[str, StudyProtocol] = {}
        self._allowed: frozenset[str] | None = None

    def allow(self, names: Collection[str]) -> None:
        """Use no protocols of other packages but these, and those of other calls."""
        self._allowed = (self._allowed or frozenset()).union(names)
        self.__dict__.pop("_places", None)

    @cached_property
    def _places(self) -> dict[str, ProtocolPlace]:
        found = {name: _place(point) for name, point in sorted(own_points(GROUP).items())}
        others = {name: _place(point) for name, point in sorted(_foreign_points().items())}
        allowed = others if self._allowed is None else self._allowed
        return {
            **self._own,
            **found,
            **{name: place for name, place in others.items() if name in allowed},
        }

    def __getitem__(self, name: str) -> StudyProtocol:
        place = self._places[name]
        if name not in self._loaded:
            kind = getattr(import_module(place.module), place.attribute)
            self._loaded.setdefault(name, kind())  # another thread may have been faster
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._places))

    def __len__(self) -> int:
        return len(self._places)

    def chosen_by(self, name: str) -> Mapping[str, str]:
        """The settings of the usual protocol that choose this one; empty where none do."""
        return self._places[name].chosen_by


def own_points(group: str) -> dict[str, EntryPoint]:
    """The entry points of umpc's own wheel, by name; none where umpc is not installed."""
    try:
        own = distribution("umpc").entry_points
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in own if point.group == group}


def _foreign_points() -> dict[str, EntryPoint]:
    """The entry points that other packages bring, by name."""
    own = own_points(GROUP)
    points = entry_points(group=GROUP)
    return {point.name: point for point in points if point.name not in own}  # none replaces ours


def _place(point: EntryPoint) -> ProtocolPlace:
    return ProtocolPlace(point.module, point.attr)
