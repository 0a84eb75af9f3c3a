"""Suggestions for a misspelt name in a TOML file: the nearest known name, and the line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

LIKENESS = 0.6
"""The least likeness of a suggestion, between 0 and 1, as `difflib` counts it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like this one, or "" if none is."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=LIKENESS)), "")


def line_of_key(text: str, key: str) -> int:
    """Return the number of the only line that begins with a key or its section, from 1; else 0."""
    name = rf"""["']?{re.escape(key)}["']?"""
    section = rf"""\[\[?\s*(?:[\w-]+\s*\.\s*)*{name}\s*\]"""
    start = re.compile(rf"\s*(?:{section}|{name}\s*=)")
    found = [number for number, line in enumerate(text.splitlines(), 1) if start.match(line)]
    return found[0] if len(found) == 1 else 0


def advice(text: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence with the line of a key and the nearest known one; "" without either."""
    line, close = line_of_key(text, name), nearest(name, known)
    place = f"It is in line {line}" if line else ""
    meant = f"did you mean `{close}`?" if close else ""
    if place and meant:
        return f" {place}; {meant}"
    return f" {place}." if place else f" {meant.capitalize()}" if meant else ""
