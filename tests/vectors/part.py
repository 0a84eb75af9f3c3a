"""One part of the protocols: what its test vectors hold, and the code that they check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from umpc.errors import UmpcError

FOLDER = Path(__file__).parent
Values = dict[str, Any]
"""Inputs or outputs of a vector, as JSON: integers, hexadecimal text, lists and objects."""


@dataclass(frozen=True)
class Bad:
    """Inputs that must be refused, with the error class, and the step and culprit that it names."""

    inputs: Values
    error: type[UmpcError]
    step: str | None = None
    culprit: str | None = None


@dataclass(frozen=True)
class Part:
    """A part of the protocols.

    Attributes:
        about: says in a few sentences what is computed, for the JSON file.
        run: computes the outputs of a good vector from its inputs.
        good: inputs by name.
        refuse: takes the inputs of a bad vector and must raise; None where `run` does.
        bad: vectors by the name of what was broken.
    """

    about: str
    run: Callable[[Values], Values]
    good: Mapping[str, Values]
    bad: Mapping[str, Bad] = field(default_factory=dict)
    refuse: Callable[[Values], object] | None = None

    def document(self) -> Values:
        """Compute the JSON document of this part with today's code."""
        good = [
            {"name": name, "inputs": inputs, "outputs": self.run(inputs)}
            for name, inputs in self.good.items()
        ]
        bad = [
            {
                "name": name,
                "inputs": each.inputs,
                "error": each.error.__name__,
                "step": each.step,
                "culprit": each.culprit,
            }
            for name, each in self.bad.items()
        ]
        return {"about": self.about, "good": good, "bad": bad}

    def take(self, inputs: Values) -> object:
        """Take inputs that are broken."""
        return (self.refuse or self.run)(inputs)


def fixed(label: int, count: int = 32) -> str:
    """Return bytes that count upwards from 16 times a number, as hexadecimal text."""
    return bytes((16 * label + place) % 256 for place in range(count)).hex()


def integers(values: np.ndarray) -> list[int]:
    return [int(value) for value in values]


def words(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


class Given:
    """A source of random bits that returns given bytes, from the first to the last.

    `given(n)` reads ceil(n/8) bytes as a little-endian integer, and drops its lowest (−n mod 8)
    bits.
    """

    def __init__(self, text: str):
        self._data = bytes.fromhex(text)
        self.used = 0

    def __call__(self, count: int) -> int:
        size = (count + 7) // 8
        part = self._data[self.used : self.used + size]
        assert len(part) == size, (
            f"the vector gives {len(self._data)} random bytes, more are needed"
        )
        self.used += size
        return int.from_bytes(part, "little") >> (-count % 8)
