"""Roots: base transfers that one study of two nodes leaves for their next, each used once.

A root is 128 base transfers with a channel's sender as the *receiver*, as every set-up needs them.
They cost no curve points: they are correlated transfers of the last study's own channel, hashed.
`chained_set_up.py` makes them and uses them.

A root lives in the memory of both processes only. A process drops it when it is used and when a run
with that peer fails. One that is beyond its limits is never used, and is dropped when the process
next takes or keeps any root.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from umpc.mpc.arrays import WordArray

ROOT_ID_BYTES = 32
NO_ROOT = bytes(ROOT_ID_BYTES)
"""In the place of an id: a new set-up, by base transfers."""
SECONDS = 3600.0
"""Seconds after base transfers by curve points for which roots that go back to them are used."""
LONGEST = 256
"""Studies that may follow each other from one set of base transfers by curve points."""
KEPT = 2
"""Roots that a process keeps for one peer in one role."""
PLACES = 256
"""Peers and roles for which a process keeps roots; one more drops the oldest."""

Lock: TypeAlias = AbstractContextManager[object]
Place: TypeAlias = tuple[bytes, bytes, str]
"""The own certificate, the peer's, and the own role."""


@dataclass(frozen=True)
class Root:
    """One party's side of 128 random transfers.

    id: names the root; both parties know it. It is no secret.
    keys: (128, 2) uint64, of the party that chose. pairs: (2, 128, 2) uint64, of the other one.
    choices: (2,) uint64, the 128 choices of the party that chose.
    checked: whether the channel that made it was checked (`correlation_check.py`).
    """

    id: bytes
    checked: bool
    keys: WordArray | None = field(default=None, repr=False)
    choices: WordArray | None = field(default=None, repr=False)
    pairs: WordArray | None = field(default=None, repr=False)
    born: float = 0.0
    length: int = 0
    """Number of studies since base transfers by curve points."""


class PeerRoots:
    """The roots that one attempt may use with one peer, and the one that it leaves.

    `take` and `claim` remove a root: no caller ever gets it again.
    """

    def __init__(self, shelf: KeptRoots, place: Place):
        self._shelf = shelf
        self._place = place
        self._used: Root | None = None  # without its keys
        self._made: Root | None = None

    def take(self, *, checked: bool) -> Root | None:
        """The root that was made last, if there is one. Args: checked: only a checked one."""
        return self._remembered(self._shelf.pop(self._place, None, checked=checked))

    def claim(self, root_id: bytes, *, checked: bool) -> Root | None:
        """The root that the peer offers, if this node has it and may use it."""
        return self._remembered(self._shelf.pop(self._place, root_id, checked=checked))

    def _remembered(self, root: Root | None) -> Root | None:
        self._used = replace(root, keys=None, choices=None, pairs=None) if root else None
        return root

    def unused(self) -> None:
        """The peer did not have the root that was taken. It is gone, and the next starts anew."""
        self._used = None

    def leave(self, root: Root) -> None:
        """Take the root that this attempt made for a later one."""
        self._made = root

    def end(self, *, keep: bool) -> None:
        """Keep the root that was left, once, if the attempt ended well; else drop all."""
        made, self._made = self._made, None
        if not keep:
            self._shelf.drop(self._place)
        elif made is not None:
            self._shelf.put(self._place, made, self._used)


class KeptRoots:
    """The roots of one process.

    Args:
        now: seconds of a clock that never goes back.
        lock: taken for each change; runs compute in threads of their own.
    """

    def __init__(self, now: Callable[[], float], lock: Lock | None = None):
        self._now = now
        self._lock = lock or nullcontext()
        self._roots: dict[Place, list[Root]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._roots.values()))

    def of(self, own: bytes, peer: bytes, role: str) -> PeerRoots:
        """Those between two certificates. role: this node's, in the channel."""
        return PeerRoots(self, (own, peer, role))

    def pop(self, place: Place, root_id: bytes | None, *, checked: bool) -> Root | None:
        """Remove and return a root: that of this id, or the last one."""
        with self._lock:
            self._forget_old()
            roots = self._roots.get(place, [])
            fitting = (at for at, root in enumerate(roots) if root.checked or not checked)
            if root_id is not None:
                fitting = (at for at in fitting if roots[at].id == root_id)
            found = list(fitting)
            return roots.pop(found[-1]) if found else None

    def put(self, place: Place, root: Root, before: Root | None) -> None:
        """Keep a root. before: the root from which its own channel was made; None if none was."""
        born = before.born if before else self._now()
        root = replace(root, born=born, length=before.length + 1 if before else 1)
        with self._lock:
            self._forget_old()
            self._roots[place] = [*self._roots.pop(place, []), root][-KEPT:]
            while len(self._roots) > PLACES:
                self._roots.pop(next(iter(self._roots)))

    def drop(self, place: Place) -> None:
        """Forget the roots of a place."""
        with self._lock:
            self._roots.pop(place, None)

    def _forget_old(self) -> None:
        """Drop all roots beyond their limits, whoever's they are."""
        oldest = self._now() - SECONDS
        for place, roots in list(self._roots.items()):
            young = [each for each in roots if each.born > oldest and each.length < LONGEST]
            if young:
                self._roots[place] = young
            else:
                del self._roots[place]
