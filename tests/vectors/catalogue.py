"""All parts of the protocols that have test vectors, by the name of their JSON file."""

from __future__ import annotations

from tests.vectors import attempts, garbled, masked, primitives, randomisers, transfers
from tests.vectors.part import Part

PARTS: dict[str, Part] = {
    **primitives.PARTS,
    **attempts.PARTS,
    **masked.PARTS,
    **garbled.PARTS,
    **transfers.PARTS,
    **randomisers.PARTS,
}
