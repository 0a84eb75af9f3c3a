"""Protocols by name, each loaded when it is first asked for.

A study needs one protocol or two, and all of them take a good part of a command's start. A process
that serves studies loads all of them before it is ready, so that no study waits for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple

from umpc.protocols.base.protocol import StudyProtocol


class ProtocolPlace(NamedTuple):
    """Where a protocol's class is. chosen_by: the class's own, which nobody loads it to ask for."""

    module: str
    attribute: str
    chosen_by: Mapping[str, str] = MappingProxyType({})


class Protocols(MutableMapping[str, StudyProtocol]):
    """Name → protocol, in the order of the places; others may follow.

    A protocol is loaded by a look at it, but not by a look at the names.
    """

    def __init__(self, places: Mapping[str, ProtocolPlace]):
        self._places: dict[str, ProtocolPlace | None] = dict(places)
        self._loaded: dict[str, StudyProtocol] = {}

    def __getitem__(self, name: str) -> StudyProtocol:
        found = self._loaded.get(name)
        if found is not None:
            return found
        place = self._places[name]
        assert place is not None, name
        kind = getattr(import_module(place.module), place.attribute)
        return self._loaded.setdefault(name, kind())  # another thread may have been faster

    def __setitem__(self, name: str, protocol: StudyProtocol) -> None:
        self._places[name] = None
        self._loaded[name] = protocol

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._places))

    def __len__(self) -> int:
        return len(self._places)

    def chosen_by(self, name: str) -> Mapping[str, str]:
        """The settings of the usual protocol that choose this one; empty where none do."""
        place = self._places[name]
        return self[name].chosen_by if place is None else place.chosen_by
