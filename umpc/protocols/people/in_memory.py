"""A study of people in one process: shares of a table that is known, and a list signed in memory.

For tests, trials and predictions: nobody sends a message, and nothing here protects anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from umpc.crypto import field
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import Credentials
from umpc.people.messages import counted_text
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.people.settings import FEWEST, PeopleTerms
from umpc.protocols.people.terms import columns_of, messages_of, with_counted
from umpc.study.document import Study
from umpc.study.settings import HONEST
from umpc.ustat.clear import Columns


def made_up_terms(places: int) -> PeopleTerms:
    """The terms of a study whose people send nothing."""
    return PeopleTerms(
        "0" * 64, places, False, FEWEST, "2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z"
    )


def made_up_entries(places: int) -> dict[str, Any]:
    """`made_up_terms` as a study file has them."""
    return {"people": msgspec.structs.asdict(made_up_terms(places))}


def counting(study: Study, n: int, own: Sequence[Credentials], rows: bytes) -> Study:
    """The study that counts n people. Args: own: of both aggregators. rows: a digest, 32 bytes."""
    statement = n.to_bytes(8, "little") + rows
    text = counted_text(messages_of(study), statement)
    signed = statement + b"".join(each.sign(text) for each in own)
    return with_counted(study, signed.hex())


def shared_out(
    study: Study, tables: Sequence[Columns], own: Sequence[Credentials], entropy: Entropy
) -> tuple[Study, list[Columns], int]:
    """The study that counts the people of all tables, a share for each aggregator, and n.

    Args: tables: people's values, field → (people,) int64. own: of both aggregators.
    """
    people = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    n = len(next(iter(people.values())))
    table = grid_of(study).tabulate(people)
    if study.adversary == HONEST:
        share = np.frombuffer(entropy(table.nbytes), dtype=np.uint64)
        other = table - share
    else:
        share = PRIME.uniform(entropy, 2 * len(table)).reshape(2, -1)
        tags = field.multiply(table, field.constant(made_up_alpha(study)))
        other = field.subtract(np.stack([table, tags]), share)
    shares: list[Columns] = [columns_of(each) for each in (share, other)]
    return counting(study, n, own, entropy(32)), shares, n


def made_up_alpha(study: Study) -> int:
    """α of a study whose people send nothing."""
    return int(PRIME.uniform(lambda _: messages_of(study).hash, 1)[0])
