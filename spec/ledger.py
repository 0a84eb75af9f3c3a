"""A node's privacy budget as a state machine: reserve, hold, charge, release, replay.

Sinh & Ramon 2025, section 4: one release is (ε, δ)-DP. So each release costs (ε, δ), costs of
several add up (Dwork & Roth 2014, section 3.5), and nothing may leave before its cost counts.

    reserve ──► reserve_delta ──► hold ──► charge ──► released, any number of times: these bytes
       └──────────────┴► cancel    └─► drop  └► answer, once

*Invariant*: at any instant the amount that counts as spent is not below the truth. Held attempts,
charges with their shares, and answers are on disk, and survive a crash at every point. A
reservation is in memory. A charge is on disk before the first byte of its share leaves, and is
never refunded. Each study is charged once, so one attempt of it leaves, whoever crashes or lies.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from spec.refused import require

State = dict[str, Any]
"""epsilon, delta, hold_seconds: the totals, and how long a held attempt reserves. In memory:
reserved, study → [ε, δ or None]. On disk: held, study → (attempt, share, until), charged, study →
(attempt, share), answered, study → (question, answer), and spent, [ε, δ]."""


def new(epsilon: Fraction, delta: Fraction, hold_seconds: int) -> State:
    """An empty ledger."""
    empty: State = {"reserved": {}, "held": {}, "charged": {}, "answered": {}}
    spent = [Fraction(0), Fraction(0)]
    return empty | {
        "epsilon": epsilon,
        "delta": delta,
        "hold_seconds": hold_seconds,
        "spent": spent,
    }


def balance(state: State) -> dict[str, Fraction]:
    """ε that is spent, reserved, and left."""
    reserved = sum((epsilon for epsilon, _ in state["reserved"].values()), Fraction(0))
    left = state["epsilon"] - state["spent"][0] - reserved
    return {"spent": state["spent"][0], "reserved": reserved, "left": left}


def check_left(state: State, epsilon: Fraction, delta: Fraction | None, replaced: bytes) -> None:
    """Basic composition: what is spent and reserved, and this, stays within both totals."""
    others = [cost for study, cost in state["reserved"].items() if study != replaced]
    epsilons = sum((each for each, _ in others), state["spent"][0])
    deltas = sum((each or Fraction(0) for _, each in others), state["spent"][1])
    require(epsilons + epsilon <= state["epsilon"], "epsilon is left")
    require(not delta or deltas + delta <= state["delta"], "delta is left")


def expire(state: State, now: int) -> None:
    """A held attempt whose time is up is given up, and its cost is free again."""
    for study in [study for study, (_, _, until) in state["held"].items() if now >= until]:
        drop(state, now, study)


def reserve(
    state: State, now: int, study: bytes, epsilon: Fraction, delta: Fraction | None
) -> None:
    """Propose, before the table is read. Args: study: its hash. delta: None if not yet known."""
    expire(state, now)
    require(study not in state["charged"], "a study is charged once")
    require(study not in state["reserved"], "one run at a time")
    check_left(state, epsilon, delta, b"")
    state["reserved"][study] = [epsilon, delta]


def reserve_delta(state: State, now: int, study: bytes, delta: Fraction) -> None:
    """Prepare: δ follows from the numbers of records. Without it, even of 0, nothing is held."""
    expire(state, now)
    found = state["reserved"].get(study)
    require(found is not None and found[1] is None, "delta is reserved once")
    check_left(state, found[0], delta, study)
    found[1] = delta


def cancel(state: State, now: int, study: bytes) -> None:
    """A run that ended before *ready* costs nothing. A held attempt stays held."""
    if study not in state["held"]:
        state["reserved"].pop(study, None)


def hold(state: State, now: int, study: bytes, attempt: bytes, share: bytes) -> None:
    """Evaluate: the finished share is on disk before the node says *ready*."""
    expire(state, now)
    cost = state["reserved"].get(study)
    fits = cost is not None and cost[1] is not None and study not in state["held"]
    require(fits, "a share is held of a reserved study")
    state["held"][study] = (attempt, share, now + state["hold_seconds"])


def drop(state: State, now: int, study: bytes) -> None:
    """Nobody has charged, and the attempt is given up."""
    if state["held"].pop(study, None):
        del state["reserved"][study]


def charge(state: State, now: int, study: bytes, attempt: bytes) -> bytes:
    """Release: all nodes are ready. Returns: the share, which may leave from now on."""
    expire(state, now)
    if study in state["charged"]:
        # the same attempt once more costs nothing, and gives the same bytes
        require(state["charged"][study][0] == attempt, "one attempt is charged")
        return state["charged"][study][1]
    found = state["held"].get(study)
    require(found is not None and found[0] == attempt, "a charge is of a held attempt")
    # one write: the charge, its share, and the end of the held attempt
    epsilon, delta = state["reserved"].pop(study)
    state["spent"] = [state["spent"][0] + epsilon, state["spent"][1] + delta]
    state["charged"][study] = found[:2]
    del state["held"][study]
    return found[1]


def released(state: State, now: int, study: bytes) -> bytes | None:
    """Replay: the bytes that left, for whoever proposes the study again."""
    return state["charged"].get(study, (None, None))[1]


def answer(
    state: State, now: int, study: bytes, attempt: bytes, question: bytes, told: bytes
) -> None:
    """The one answer of protocols that ask after the release; the charge has paid for it."""
    require(study in state["charged"], "an answer is paid")
    require(study not in state["answered"], "one question is answered")
    state["answered"][study] = (question, told)


def answered(state: State, now: int, study: bytes) -> bytes | None:
    """Replay of the answer."""
    return state["answered"].get(study, (None, None))[1]


def restart(state: State, now: int) -> None:
    """The process died: its reservations are gone, but for those of held attempts."""
    expire(state, now)
    for study in state["reserved"].keys() - state["held"].keys():
        del state["reserved"][study]


def run(
    epsilon: list[int], delta: list[int], hold_seconds: int, steps: list[list[Any]]
) -> list[dict[str, Any]]:
    """A ledger's life. Args: steps: the second, a transition's name, and its arguments.

    Amounts are a numerator and a denominator. Returns: after each step what it returned, and ε that
    is spent, reserved and left.
    """
    state = new(Fraction(*epsilon), Fraction(*delta), hold_seconds)
    lines = []
    for now, name, *given in steps:
        values = [Fraction(*each) if isinstance(each, list) else each for each in given]
        returned = TRANSITIONS[name](state, now, *values)
        amounts = {key: [v.numerator, v.denominator] for key, v in balance(state).items()}
        lines.append({"returned": returned, **amounts})
    return lines


TRANSITIONS: dict[str, Any] = {
    each.__name__: each
    for each in (
        reserve,
        reserve_delta,
        cancel,
        hold,
        drop,
        charge,
        released,
        answer,
        answered,
        restart,
    )
}
