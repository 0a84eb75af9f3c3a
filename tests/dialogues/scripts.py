"""The dialogues of whole studies of every protocol, as `talk` reads them."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.dialogues.house import NODES, House
from tests.dialogues.talk import BEGIN, RELEASED, WITH_DEALER, lines

NEW_CHANNEL = """
release    earlier > later: ot_choice
release    later > earlier: ot_offer, ot_trees
"""
MASKED = f"""{RELEASED}{WITH_DEALER}
prepare    earlier > later: hello
prepare    later > earlier: hello
evaluate   earlier > later: masked_fields, open 1
evaluate   later > earlier: masked_fields, open 1
"""
MASKED_OF_THREE = MASKED.replace("material", "material x2")
TOSSED = f"""{RELEASED}{WITH_DEALER}
prepare    earlier > later: hello, ot_choice, toss 1, toss x4, ot_open_bits x4
prepare    later > earlier: hello, ot_offer, ot_trees, toss x4, ot_open_bits x4
evaluate   earlier > later: masked_fields, open 1
evaluate   later > earlier: masked_fields, open 1
{NEW_CHANNEL}"""
DEALT_COINS = f"""{RELEASED}
prepare    each > dealer: deal
prepare    dealer > each: node_seed, material x2
prepare    earlier > later: hello, open 1, open 2, open 3, open 4
prepare    later > earlier: hello, open 1, open 2, open 3, open 4
evaluate   earlier > later: masked_fields, open 1
evaluate   later > earlier: masked_fields, open 1
"""
GARBLED = f"""{RELEASED}
prepare    earlier > later: hello, ot_choice
prepare    later > earlier: hello, ot_offer, ot_trees
evaluate   earlier > later: labels, garbled
evaluate   later > earlier: ot_extend 1
{NEW_CHANNEL}"""
TRIPLES = f"""{RELEASED}
prepare    earlier > later: hello, ot_choice
prepare    later > earlier: hello, ot_offer, ot_trees
evaluate   earlier > later: triples 2, triples 3, triples 4, triples 5, triples 7
evaluate   later > earlier: triples 1, triples 3, triples 4, triples 5, triples 6
"""
OF_TOTAL = """
evaluate   coordinator > each: evaluate
evaluate   each > coordinator: histogram
total      coordinator > each: total
total      each > coordinator: total_signed
confirm    coordinator > each: total_confirmed
confirm    each > coordinator: ready
release    coordinator > each: release
release    each > coordinator: released
"""
GRID = f"{BEGIN}{OF_TOTAL}{WITH_DEALER}"
VERIFIED = f"""{BEGIN}{WITH_DEALER}
evaluate   coordinator > each: evaluate
evaluate   each > coordinator: histogram, list, opening
total      coordinator > each: total, list, opening
total      each > coordinator: inverses, proof, statement
total      each > dealer: asks
total      coordinator > dealer: asks
total      dealer > each: answer x3
total      dealer > coordinator: answer x3
proofs     coordinator > each: inverses, proof, statement
proofs     each > coordinator: total_signed
confirm    coordinator > each: total_confirmed
confirm    each > coordinator: ready
release    coordinator > each: release
release    each > coordinator: released
"""
VERIFIED_BY_THREE = (
    VERIFIED.replace("answer x3", "answer x4")
    .replace("each: total, list, opening", "each: total, list, opening, list, opening")
    .replace(
        "each: inverses, proof, statement",
        "each: inverses, proof, statement, inverses, proof, statement",
    )
)
GRID_ALONE = f"""{RELEASED}
prepare    earlier > later: hello, ot_choice 1
prepare    later > earlier: hello, ot_offer 1, ot_trees 1
evaluate   earlier > later: ot_multiples 2
evaluate   later > earlier: ot_extend 1
"""
VECTOR = f"""{RELEASED}
prepare    each > dealer: deal
prepare    dealer > each: node_seed, material x2
prepare    earlier > later: hello
prepare    later > earlier: hello
evaluate   earlier > later: masked_fields, open 1 x2
evaluate   later > earlier: masked_fields, open 1 x2
"""
TWO_ROUNDS = f"""{RELEASED}
ask        coordinator > each: ask
ask        each > coordinator: answer
"""
SHUFFLED = f"""{RELEASED}
prepare    each > shuffler-1: begin
prepare    each > shuffler-2: begin
prepare    shuffler-1 > each: taken
prepare    shuffler-2 > each: taken
prepare    shuffler-1 > shuffler-2: order
prepare    shuffler-2 > shuffler-1: ordered
prepare    coordinator > shuffler-1: collect
prepare    coordinator > shuffler-2: collect
prepare    shuffler-1 > coordinator: run
prepare    shuffler-2 > coordinator: run
release    each > shuffler-1: shares
release    each > shuffler-2: pad
release    shuffler-1 > each: taken
release    shuffler-2 > each: taken
release    shuffler-1 > coordinator: heap
release    shuffler-2 > coordinator: heap
"""
DIALOGUES = {
    ("tables", 2): MASKED,
    ("tables", 3): MASKED_OF_THREE,
    ("keys", 2): MASKED,
    ("keys", 3): MASKED_OF_THREE,
    ("mean", 2): RELEASED,
    ("mean", 3): RELEASED,
    ("committee", 2): TOSSED,
    ("dealt coins", 2): DEALT_COINS,
    ("dealt coins", 3): DEALT_COINS.replace("material x2", "material x3"),
    ("garbled", 2): GARBLED,
    ("garbled", 3): GARBLED,
    ("triples", 2): TRIPLES,
    ("triples", 3): TRIPLES,
    ("grid", 2): GRID,
    ("grid", 3): GRID,
    ("verified grid", 2): VERIFIED,
    ("verified grid", 3): VERIFIED_BY_THREE,
    ("grid alone", 2): GRID_ALONE,
    ("grid alone", 3): GRID_ALONE,
    ("vector", 2): VECTOR,
    ("local mean", 2): RELEASED,
    ("local mean", 3): RELEASED,
}
LARGE = {
    ("two rounds", 2): TWO_ROUNDS,
    ("two rounds", 3): TWO_ROUNDS,
    ("shuffled", 2): SHUFFLED,
    ("shuffled", 3): SHUFFLED,
}
"""Those of protocols that need many records."""


class Line(NamedTuple):
    """One message of a study: the n-th of its name between two processes, in a step."""

    kind: str
    step: str
    sender: str
    receiver: str
    name: str
    number: int

    def __str__(self) -> str:
        number = f" #{self.number}" if self.number > 1 else ""
        return f"{self.kind}: {self.sender} > {self.receiver}: {self.name}{number}"


def messages_of(kind: str, dialogue: str) -> list[Line]:
    """All messages of a study of two nodes. A dealer's first message has all that it says."""
    found: list[Line] = []
    for step, (sender, receiver), names in lines(dialogue, NODES[:2]):
        for name in names[:1] if sender == "dealer" else names:
            word, _, times = name.partition(" x")
            for _ in range(int(times or 1)):
                same = [each for each in found if each[2:5] == (sender, receiver, word)]
                found.append(Line(kind, step, sender, receiver, word, len(same) + 1))
    return found


MESSAGES = [
    line
    for (kind, nodes), dialogue in {**DIALOGUES, **LARGE}.items()
    if nodes == 2 and kind not in ("keys", "mean", "dealt coins", "local mean")
    for line in messages_of(kind, dialogue.replace(NEW_CHANNEL, ""))
    if ("north" if line.sender not in NODES else "south") not in (line.sender, line.receiver)
    or {line.sender, line.receiver} == {"north", "south"}
]
"""Every message of one study of each protocol that says something of its own.

It has one of the messages that all nodes send or get: to south from the coordinator, to it from
north.
"""


def house_for(request: pytest.FixtureRequest, kind: str) -> House:
    """The house whose nodes have records enough for a kind of study."""
    found: House = request.getfixturevalue("roomy" if (kind, 2) in LARGE else "house")
    return found
