"""Text from outside as one line that a terminal, a browser and an editor show as it is."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text without the characters that steer a terminal or turn the direction of letters.

    A study's name is its coordinator's. With a line feed it could forge a line of the output, and
    with other characters it could hide what stands beside it. Every kind of blank becomes a space,
    and any other character that cannot be printed a question mark.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else "?"
