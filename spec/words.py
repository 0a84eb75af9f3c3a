"""Uniform numbers from one stream, read in order: what all nodes draw alike from the joint seed."""

from __future__ import annotations

from collections.abc import Callable

from spec.prg import words

Draw = Callable[[int], list[int]]
"""Number of words → the next words of 64 bits of the stream."""


def reader(seed: bytes) -> Draw:
    """Read the stream of a seed from its start, each word once."""
    used = 0

    def draw(count: int) -> list[int]:
        nonlocal used
        used += count
        return words(seed, count, skip=8 * (used - count))

    return draw


def below(bound: int, word: int) -> int:
    """A number in [0, bound), by multiply and shift of the word's upper half (Lemire 2019)."""
    return (word >> 32) * bound >> 32


def random_order(size: int, draw: Draw) -> list[int]:
    """A random permutation: places in the order of their words; equal words keep their order."""
    drawn = draw(size)
    return sorted(range(size), key=lambda place: (drawn[place], place))
