"""What every calibration refuses: numbers that are not exact, or outside their range."""

from __future__ import annotations

from fractions import Fraction

from umpc.errors import InvalidEpsilon, StudyError


def is_integer(value: object) -> bool:
    """Whether this is an int, and not True or False."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_exact(value: object) -> bool:
    """Whether this is an int or a Fraction: a float such as 0.1 is not the number that somebody wrote."""
    return is_integer(value) or isinstance(value, Fraction)


def check_epsilon(epsilon: object) -> Fraction:
    """An exact epsilon > 0.

    Raises:
        InvalidEpsilon: it is not.
    """
    if not is_exact(epsilon) or epsilon <= 0:
        raise InvalidEpsilon(
            f"epsilon must be an exact number above 0, such as 1 or 1/2, but {epsilon} came "
            f"(of type {type(epsilon).__name__})"
        )
    return Fraction(epsilon)


def check_delta(delta: object) -> Fraction:
    """An exact delta with 0 < delta < 1.

    Raises:
        InvalidEpsilon: it is not.
    """
    if not is_exact(delta) or not 0 < delta < 1:
        raise InvalidEpsilon(
            f"delta must be an exact number between 0 and 1, such as Fraction(1, 10**6), but {delta} came "
            f"(of type {type(delta).__name__}); without any delta, take discrete Laplace noise"
        )
    return Fraction(delta)


def check_sensitivity(sensitivity: object) -> int:
    """A sensitivity in units of the sum: an integer, 0 or more.

    Raises:
        StudyError: it is not.
    """
    if not is_integer(sensitivity) or sensitivity < 0:
        raise StudyError(f"the sensitivity must be an integer, 0 or more, but {sensitivity!r} came")
    return sensitivity


def check_nodes(nodes: object, honest: object) -> None:
    """1 <= honest <= nodes.

    Raises:
        StudyError: not so.
    """
    if not (is_integer(nodes) and is_integer(honest) and 1 <= honest <= nodes):
        raise StudyError(
            "the nodes assumed honest must be at least 1 and at most all nodes, but "
            f"{honest!r} of {nodes!r} came; change the number of nodes that may collude"
        )
