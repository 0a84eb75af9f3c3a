"""A queue in which the members that something comes from take turns.

In one line for all, an honest member's envelope would wait behind all that a member which floods
has put there. Here it waits behind one frame of each other member. Frames of one member, and
notices about it, keep their order.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")
Member = tuple[str, str]
"""(role, name); all processes of a member take one turn."""


class Turns(Generic[Item]):
    """A queue of items, each of a member."""

    def __init__(self) -> None:
        self._of: dict[Member, deque[Item]] = {}
        self._turns: deque[Member] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, member: Member) -> bool:
        """Return whether something of a member waits."""
        return member in self._of

    def put(self, member: Member, item: Item) -> None:
        """Add an item behind all others of its member."""
        waiting = self._of.get(member)
        if waiting is None:
            waiting = self._of[member] = deque()
            self._turns.append(member)
        waiting.append(item)
        self._count += 1

    def take(self) -> Item | None:
        """Return the first item of the member whose turn it is; None where nothing waits."""
        if not self._turns:
            return None
        member = self._turns[0]
        waiting = self._of[member]
        item = waiting.popleft()
        self._count -= 1
        if waiting:
            self._turns.rotate(-1)
        else:
            self._turns.popleft()
            del self._of[member]
        return item

    def clear(self) -> None:
        """Forget all that waits."""
        self._of.clear()
        self._turns.clear()
        self._count = 0
