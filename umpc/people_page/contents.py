"""The page's content: the study's form and keys, and texts in languages.

The browser has no grid of its own: `form_of` (`umpc/protocols/people/terms.py`) gives it all that a
cell is made of.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from umpc.decoding import decode
from umpc.errors import ConfigError, StudyError
from umpc.people.device import Invited
from umpc.protocols.people.terms import form_of, terms_of
from umpc.reporting.page import BASE
from umpc.study.settings import HONEST
from umpc.text_file import read_text

FOLDER = Path(__file__).parent
Texts = Mapping[str, Mapping[str, str]]
"""Language → key → text."""


@dataclass(frozen=True)
class PeopleContents:
    """All that a browser may ask for.

    files: path → content and media type. code: the SHA-256 of page.html, in hexadecimal. It fixes
    program, keys and texts, because page.html names the digests of the files that have them.
    """

    invited: Invited
    files: Mapping[str, tuple[bytes, str]]
    code: str


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


def contents_of(invited: Invited, server: str, texts: Texts) -> PeopleContents:
    """The page of a study.

    Args: server: who serves the page, as people know it.

    Raises: StudyError for a study without tokens, for one that a browser cannot answer, and for a
        server that the study's grade does not trust; ConfigError for a server without a name.
    """
    study, invitation = invited.study, invited.invitation
    if not server.strip():
        raise ConfigError(
            "the name of whoever serves the page was expected, as people know it, and an empty one "
            "came; write it behind --served-by"
        )
    if terms_of(study).enrolled:
        raise StudyError(
            "a study with tokens was expected, and this one is for enrolments, whose keys are in "
            "files of devices: people answer it by `umpc people submit --key`"
        )
    if study.adversary != HONEST and server in (study.coordinator, *(n.name for n in study.nodes)):
        raise StudyError(
            f"{server} serves the page, and this study promises that {server} may lie: a page's "
            "server reads each value if it lies, so let somebody else serve it, or let people "
            "answer by `umpc people submit`"
        )
    page = (FOLDER / "page.html").read_bytes()
    about = {
        "invitation": invitation,
        "hash": invited.survey.hash,
        "cells": invited.survey.cells,
        "keys": invited.keys,
        "server": server,
        "texts": texts,
        **form_of(study),
    }
    named = {
        "page.css": (BASE.encode() + (FOLDER / "page.css").read_bytes(), "text/css"),
        "page.js": ((FOLDER / "page.js").read_bytes(), "text/javascript"),
        "study.json": (msgspec.json.encode(about), "application/json"),
    }
    for name, (data, _) in named.items():
        digest = b64encode(hashlib.sha256(data).digest())
        page = page.replace(f"{{{name}}}".encode(), b"sha256-" + digest)
    files = {f"/{name}": each for name, each in named.items()}
    files["/"] = page, "text/html"
    files["/invitation.json"] = invitation.encode(), "application/json"
    return PeopleContents(invited, files, hashlib.sha256(page).hexdigest())
