"""Fields of numbers from short facts: bounds, and a resolution where they are not whole."""

from __future__ import annotations

from umpc.study.parts import FieldText


def number_field(name: str, lower: str, upper: str, resolution: str = "") -> FieldText:
    """Return a field of whole numbers, or of the resolution that is given."""
    return FieldText(name, lower, upper, resolution, whole=not resolution)
