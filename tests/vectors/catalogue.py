"""All parts of the protocols that have test vectors, by the name of their JSON file."""

from __future__ import annotations

from tests.vectors import frames, primitives, randomisers, transcripts
from tests.vectors.part import Part

PARTS: dict[str, Part] = {
    **primitives.PARTS,
    **frames.PARTS,
    **randomisers.PARTS,
    **transcripts.PARTS,
}
