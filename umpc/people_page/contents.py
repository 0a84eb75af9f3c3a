"""The page's content: the study's form and keys, and texts in languages.

The browser has no grid of its own: `form_of` gives it all that a cell is made of.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import msgspec

from umpc.decoding import decode
from umpc.errors import ConfigError, StudyError
from umpc.people.device import Invited
from umpc.protocols.people.terms import form_of, terms_of
from umpc.study.document import dealer_of
from umpc.text_file import read_text

FOLDER = Path(__file__).parent
Texts = Mapping[str, Mapping[str, str]]
"""Language → key → text."""


def program() -> tuple[dict[str, bytes], str]:
    """The files of the page as they are served, and the SHA-256 of the first in hexadecimal.

    page.html names the digests of the two others, so its own digest fixes all three.
    """
    files = {name: (FOLDER / name).read_bytes() for name in ("page.html", "page.css", "page.js")}
    for name in ("page.css", "page.js"):
        digest = b"sha256-" + b64encode(hashlib.sha256(files[name]).digest())
        files["page.html"] = files["page.html"].replace(f"{{{name}}}".encode(), digest)
    return files, hashlib.sha256(files["page.html"]).hexdigest()


def read_texts(own: Path | None) -> Texts:
    """The page's texts, in which those of a file take the place of umpc's own.

    A language that umpc has not begins with the English texts.

    Raises: ConfigError.
    """
    found: dict[str, dict[str, str]] = {}
    for path in (FOLDER / "texts.json", own):
        if path is None:
            continue
        try:
            text = read_text(path, "the texts of a page", ConfigError)
            read = decode(text.encode(), dict[str, dict[str, str]])
        except msgspec.MsgspecError as error:
            raise ConfigError(
                f'{path}: texts of languages were expected, as {{"en": {{"question": "…"}}}}, and '
                f"{error}: correct it there"
            ) from error
        for language, texts in read.items():
            found[language] = {**found.get("en", {}), **found.get(language, {}), **texts}
    return found


def contents(invited: Invited, question: str, texts: Texts, code: str) -> bytes:
    """All that the browser needs, as JSON. Raises: StudyError for a study without tokens."""
    study, survey, terms = invited.study, invited.survey, terms_of(invited.study)
    if terms.enrolled:
        raise StudyError(
            "a study with tokens was expected, and this one is for enrolments, whose keys are in "
            "files of devices: people answer it by `umpc people submit --key`"
        )
    aggregators = invited.invitation.aggregators
    return msgspec.json.encode(
        {
            "study": study.name,
            "question": question or study.name,
            "coordinator": study.coordinator,
            "dealer": dealer_of(study)[0],
            "names": [each.name for each in aggregators],
            "epsilon": study.epsilon,
            "fewest": terms.fewest,
            "opens": terms.opens,
            "closes": terms.closes,
            "hash": survey.hash,
            "cells": survey.cells,
            "keys": invited.keys,
            "boxKeys": [each.box_key for each in aggregators],
            "code": code,
            "texts": texts,
            **form_of(study),
        }
    )
