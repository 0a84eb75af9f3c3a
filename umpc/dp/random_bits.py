"""The source of randomness: a function from a number of bits to a uniform integer of as many bits.

Nothing in `umpc.dp` opens another source. So a draw is a deterministic function of its arguments
and of the bits it is given: a node passes `secrets.randbits`, and a test passes a seeded stream and
gets the same draw again. The noise is only as good as its source. The outputs of a general-purpose
generator (`random`, numpy) are predictable, and would undo the privacy that the noise is for.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from umpc.errors import LocalProtocolError

RandomBits = Callable[[int], int]
"""`bits(n)` is uniform on 0 .. 2^n − 1, independent of earlier calls. Nodes: `secrets.randbits`."""

STEP = 64
"""Bits by which a `LazyUniform` is started and extended."""


class LazyUniform:
    """A real number U, uniform on [0, 1), of which only the bits asked for so far have been drawn.

    The known prefix u of `width` bits says u/2^width <= U <= (u+1)/2^width. U meets the upper end
    with probability 0. The caller compares U with a number, and asks for more bits until that
    interval decides. So the outcome is that of infinitely many bits, not of a rounded U.

    Args:
        bits: the source of randomness.
        most: a width in bits that a working source does not get to. `extend` refuses to pass it:
            a source stuck at all ones means U = 1, which no comparison ever decides.
        prefix: bits of U that were drawn before, as an integer of `width` bits. Secret.
        width: how many they are; none is drawn at once if there are some.
    """

    def __init__(self, bits: RandomBits, most: int, prefix: int = 0, width: int = 0):
        self._bits = bits
        self._most = most
        self._prefix = prefix
        self.width = width
        if not width:
            self.extend()

    def extend(self) -> None:
        """Draw the next 64 bits of U.

        Raises:
            LocalProtocolError: the source returned something other than 64 bits, or U has used up
                `most` bits.
        """
        if self.width >= self._most:
            raise LocalProtocolError(
                f"expected a noise draw to be decided within {self._most} random bits, "
                "but it was not; a working source of randomness never does that: "
                "check the source, then start again"
            )
        more = self._bits(STEP)
        if not 0 <= more < 1 << STEP:
            raise LocalProtocolError(
                f"expected {STEP} random bits, but the source returned an integer outside "
                f"0 .. 2^{STEP}-1; pass a function such as secrets.randbits"
            )
        self._prefix = self._prefix << STEP | more
        self.width += STEP

    def certainly_below(self, number: arb) -> bool:
        """Whether every U with the known prefix is (almost surely) below the whole enclosure."""
        return bool(number >= arb((self._prefix + 1, -self.width)))

    def certainly_not_below(self, number: arb) -> bool:
        """Whether every U with the known prefix is at least every number in the enclosure."""
        return bool(number <= arb((self._prefix, -self.width)))

    def resolved_by(self, number: arb) -> bool:
        """Whether the enclosure is narrow against the unknown part of U.

        If it is, a sharper enclosure would not help, and U needs more bits.
        """
        return number.is_finite() and bool(number.rad() < arb((1, -self.width - 8)))

    def __repr__(self) -> str:
        return f"LazyUniform(<redacted>, width={self.width})"
