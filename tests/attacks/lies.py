"""The record of lies: a liar writes down each lie that it tells, and the tests require it.

Whatever the defence is, it holds against a liar that tells the truth. So a liar of any process
passes each message that it sends through `told`. That appends a line to the file that the
environment names, if the message differs from the honest one. `check` compares the lines with the
strategies that a test's marker `lies` names.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

FILE = "UMPC_TEST_LIES"
"""The environment variable with the path of the record."""


@dataclass(frozen=True)
class Lie:
    """The strategy, the study in which the lie was told, and the message that was changed."""

    strategy: str
    study: str
    message: str


def told(strategy: str, study: str, message: str, honest: T, sent: T) -> T:
    """Write down a lie, and return it. A message that stays honest is no lie.

    Args: message: its name in the record. honest, sent: the message of a node that follows the
        protocol, and that of the liar.
    """
    if sent != honest:
        with Path(os.environ[FILE]).open("a") as file:
            file.write(f"{strategy}\t{study}\t{message}\n")
    return sent


class Record:
    """The lies of all liars, in this process and in those that it started."""

    def __init__(self, file: Path):
        self._file = file
        self._known: set[str] = set()
        file.touch()

    def new(self) -> list[Lie]:
        """Return the lies in studies in which no earlier call found one."""
        lines = self._file.read_text().splitlines()
        lies = [Lie(*line.split("\t")) for line in lines]
        new = [lie for lie in lies if lie.study not in self._known]
        self._known |= {lie.study for lie in new}
        return new


def check(due: Collection[str], lies: Iterable[Lie]) -> None:
    """Check that exactly these strategies were used, each in studies that are named after it."""
    lies = list(lies)
    found = {lie.strategy for lie in lies}
    assert found == set(due), f"lies due: {sorted(due)}, lies told: {lies or 'none'}"
    for lie in lies:
        assert lie.study.startswith(f"{lie.strategy}-"), f"{lie.study} was to be honest: {lie}"
