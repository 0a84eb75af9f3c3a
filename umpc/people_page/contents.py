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

    files: path → content and media type. code: the SHA-256 of the program, in hexadecimal, which is
    that of page.html, because it names the digests of page.js and page.css.
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
        server that the study's grade does not trust.
    """
    study, invitation = invited.study, invited.invitation
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
    files = {"/invitation.json": (invitation.encode(), "application/json")}
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
        data = BASE.encode() * (name == "page.css") + (FOLDER / name).read_bytes()
        digest = b64encode(hashlib.sha256(data).digest())
        page = page.replace(f"{{{name}}}".encode(), b"sha256-" + digest)
        files[f"/{name}"] = data, kind
    code = hashlib.sha256(page).hexdigest()
    files["/"] = page, "text/html"
    about = {
        "invitation": invitation,
        "hash": invited.survey.hash,
        "cells": invited.survey.cells,
        "keys": invited.keys,
        "server": server,
        "code": code,
        "texts": texts,
        **form_of(study),
    }
    files["/study.json"] = msgspec.json.encode(about), "application/json"
    return PeopleContents(invited, files, code)
