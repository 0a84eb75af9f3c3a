"""Limits that tests make small, so that little data takes many chunks or messages, and a mutant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tests.support.doors import Limit
from umpc.mpc.garbled import plan as garbled
from umpc.mpc.masked import cells, plan
from umpc.mpc.transfers import correlated_ot, message_shapes
from umpc.testing import lying
from umpc_papers.ghazi_shuffle import inbox


def small_chunks(limit: Limit, field_bytes: int | None = None) -> None:
    """Chunks of 8 masked edges. Args: field_bytes: of one message of masked records."""
    limit(plan, MAX_CHUNK=8)
    limit.hold(lying("everybody", chunk_edges=lambda *_: 8))  # plans keep it
    if field_bytes is not None:
        limit(cells, FIELDS_BYTES=field_bytes)


def small_garbled_messages(
    limit: Limit, labels: int, choices: int, payload: int | None = None
) -> None:
    """Messages with so many records' labels and choices, and tables of so many bytes.

    Proofs of choices have no room of their own in such small messages.
    """
    limit(garbled, LABELS_AT_ONCE=labels)
    limit(garbled, CHOICES_AT_ONCE=choices)
    if payload is not None:
        limit(garbled, MAX_PAYLOAD=payload)
        limit(garbled, CHECK_ROOM=0)


def small_garbled_chunks(limit: Limit, edges: int) -> None:
    """Chunks of so many garbled edges."""
    limit(garbled, EDGES=edges)


def committee_of_two() -> AbstractContextManager[None]:
    """Two nodes draw the noise of any study with a committee."""
    return lying("everybody", committee_size=lambda honest, nodes, colluding: 2)


def small_heaps(limit: Limit) -> None:
    """Frames of 1,000 bytes between nodes, shufflers and coordinator."""
    limit(inbox, MAX_PAYLOAD=1000)


def short_parts(limit: Limit, transfers: int) -> None:
    """Make the parts of a batch so short that small batches have several."""
    for module in (correlated_ot, message_shapes):
        limit(module, PART=transfers)


def no_mask_of_choices() -> AbstractContextManager[None]:
    """A mutant: all leaves of all channels are stretched to zeros, so nothing masks the choices.

    The message is the choices, t is 0 and q is r·Δ, so results stay right. It changes what comes
    from numpy and from the compiled kernel.
    """

    def zeros(honest: Callable[..., Any], *given: Any) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros_like(each) for each in honest(*given))

    return lying("node", stretched=zeros)
