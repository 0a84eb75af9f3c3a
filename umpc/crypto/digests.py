"""Digests of several byte strings. It needs no numpy, so a process that only signs loads none."""

from __future__ import annotations

import hashlib


def digest(*parts: bytes) -> bytes:
    """SHA-256 of the parts, each preceded by its length."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little") + part)
    return state.digest()
