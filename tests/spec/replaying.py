"""The tests of one part of the specification: umpc replays its vectors, and its checks are needed.

A test file has one replay for each function of the specification that its vectors call: arguments,
as the specification takes them, to results, by umpc's public names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from spec.__main__ import FOLDER
from spec.cases.vectors import from_json, to_json
from umpc.crypto.rounds import Finished, Protocol, resume
from umpc.errors import UmpcError
from umpc.testing import CHECKS, without

Replay = Callable[..., Any]
INSTEAD = {
    "the own table is in the root": "shape of a list",
    "the total is the one signed": "all statements name one root",
    "all tables are shown": "the total is that of all tables",
    "a table is shown as signed": "the total is that of all tables",
    "inverses beside bits": "all proofs are there",
}
"""Check, or vector, of the specification → the check of umpc that refuses in its place.

A node of umpc takes neither its own list nor a table from the coordinator, signs the total that it
was told, and names the coordinator for a false total, whatever it would show. Bytes of a step that
is not due are no frame of the next one.
"""
NOT_REPLAYED = {"the dealer signed its answer"}
"""Checks whose vectors blame another process: umpc hears the dealer itself, and names it."""
ONLY_IN_UMPC = {"the evidence proves the lie"}
"""Checks of what umpc keeps on a disk, of which the specification has nothing."""
NAMES = ("test_good_vectors", "test_bad_vectors", "test_each_check_is_needed")


def vectors(part: str, kind: str) -> list[Any]:
    """The good or bad vectors of a part, as parameters of a test."""
    found = json.loads((FOLDER / f"{part}.json").read_text("utf-8"))[kind]
    return [pytest.param(each, id=each["name"]) for each in found]


def replay_tests(part: str, replays: Mapping[str, Replay]) -> list[Callable[..., None]]:
    """The tests that umpc computes a part's good vectors, refuses its bad ones, and needs each
    check for it."""

    def replay(vector: dict[str, Any]) -> Any:
        return replays[vector["function"]](**from_json(vector["inputs"]))

    @pytest.mark.parametrize("vector", vectors(part, "good"))
    def good(vector):
        assert to_json(replay(vector)) == vector["outputs"]

    lies = [each for each in vectors(part, "bad") if each.values[0]["check"] not in NOT_REPLAYED]

    def check_of(vector: dict[str, Any]) -> str:
        named = INSTEAD.get(vector["check"], vector["check"])
        return INSTEAD.get(vector["name"], named)

    def is_refused_as_named(vector: dict[str, Any]) -> bool:
        try:
            replay(vector)
        except UmpcError as error:
            words, *_ = CHECKS[check_of(vector)]
            return error.culprit == vector["culprit"] and words in error.message
        except Exception:  # what comes of a value that nobody checked may be anything
            return False
        return False

    @pytest.mark.parametrize("vector", lies)
    def bad(vector):
        assert is_refused_as_named(vector)

    @pytest.mark.parametrize("vector", lies)
    def power(vector):
        with without(check_of(vector)):
            assert not is_refused_as_named(vector)

    for test, name in zip((good, bad, power), NAMES, strict=True):
        test.__name__ = test.__qualname__ = name
    return [good, bad, power]


def replaced(protocol: Protocol[Any], step: str, payload: bytes) -> Protocol[Any]:
    """A party whose message of one step is replaced."""
    replies = None
    while True:
        message = resume(protocol, replies)
        if isinstance(message, Finished):
            return message.result
        if message.step == step and message.width:
            message = replace(message, payload=payload)
        replies = yield message
