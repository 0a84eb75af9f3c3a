"""Pages of the documentation's site that are made from files outside docs/.

MkDocs calls the functions `on_...` of this file (mkdocs.yml, `hooks`). README.md and its neighbours
become pages, and every package of the reference gets one page. A link that works in the repository
is turned into one that works in the site, so each text is written once.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
    "bench/README.md": "bench.md",
    "reproduction/README.md": "reproduction.md",
    "native/README.md": "native.md",
    "clients/r/README.md": "r.md",
    "umpc_papers/docs/protocol.md": "papers/protocol.md",
    "umpc_papers/docs/privacy.md": "papers/privacy.md",
}
"""File of the repository, and the page that it becomes."""

PICTURES = ("bench/pictures/", "reproduction/pictures/")
"""Folders whose pictures and pages are at the same place in the site."""

PACKAGES = (
    "ustat",
    "dp",
    "crypto",
    "native",
    "study",
    "api",
    "deployment",
    "inference",
    "reporting",
    "mpc",
    "protocols",
    "planning",
    "node",
    "coordinator",
    "dealer",
    "transport",
    "proto",
    "cli",
    "umpc_papers",
)
"""Packages with a page of the reference each: those of umpc, and the one `BESIDE` it."""

BESIDE = "umpc_papers"

SHOWN = {"proto": "umpc.proto.codec"}
"""The module that a package's page shows in its place: generated code has no docstrings."""

LINK = re.compile(r"(?P<open>\]\()(?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the folders of the navigation: a page for each former decision and package."""
    former = sorted((ROOT / "docs" / "history").glob("0*.md"))
    folders: dict[str, list[Any]] = {
        "history/": ["history/README.md", *(f"history/{path.name}" for path in former)],
        "api/": ["api/index.md", *(f"api/{name}.md" for name in PACKAGES)],
    }
    assert config.nav is not None
    config.nav = [_filled(entry, folders) for entry in config.nav]
    return config


def _filled(entry: dict[str, Any], folders: dict[str, list[Any]]) -> dict[str, Any]:
    """One entry of the navigation, with a folder's name replaced by the folder's pages."""
    ((title, target),) = entry.items()
    if isinstance(target, str) and target in folders:
        return {title: folders[target]}
    return {title: target}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the pictures that they show."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "LICENSE":
            text = f"# License\n\n```text\n{text}\n```\n"
        files.append(File.generated(config, page, content=text))
    for name in PACKAGES:
        text = f"---\ntitle: {_package(name)}\n---\n\n::: {SHOWN.get(name, _package(name))}\n"
        files.append(File.generated(config, f"api/{name}.md", content=text))
    files.append(File.generated(config, "api/index.md", content=_reference()))
    files.append(File.generated(config, "tutorial.md", content=_tutorial()))
    for picture in sorted(each for folder in PICTURES for each in (ROOT / folder).iterdir()):
        if picture.suffix in (".png", ".md"):
            page = picture.relative_to(ROOT).as_posix()
            files.append(File.generated(config, page, abs_src_path=str(picture)))
    return files


def _reference() -> str:
    """The page that lists the packages of the reference."""
    rows = "\n".join(
        f"| [{_package(name)}]({name}.md) | {_first_line(name)} |" for name in PACKAGES
    )
    return (
        "# Reference\n\nThese pages are made from the docstrings of the code.\n\n"
        f"| package | what it is |\n|---|---|\n{rows}\n"
    )


def _tutorial() -> str:
    """docs/tutorial.ipynb as Markdown: its text, its code, and what its cells show."""
    text = (ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8")
    parts = [part for cell in json.loads(text)["cells"] for part in _cell(cell)]
    return "\n\n".join(parts) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    """One cell of a notebook as Markdown."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        kinds = output.get("data", {"text/plain": output.get("text", "")})
        shown = {kind: "".join(value) for kind, value in kinds.items()}
        page = shown.get("image/svg+xml") or shown.get("text/html")
        if page:
            lines = [line for line in page.splitlines() if line.strip()]
            yield "<div>" + "\n".join(lines) + "</div>"
        else:
            yield f"```text\n{shown['text/plain'].rstrip()}\n```"


def _package(name: str) -> str:
    """The name by which a package of `PACKAGES` is imported."""
    return name if name == BESIDE else f"umpc.{name}"


def _first_line(name: str) -> str:
    """The first line of a package's docstring."""
    folder = ROOT / _package(name).replace(".", "/")
    text = (folder / "__init__.py").read_text(encoding="utf-8")
    return text.split('"""')[1].strip().splitlines()[0]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    page_path = page.file.src_uri
    source = {target: origin for origin, target in PAGES.items()}.get(page_path)
    if page_path.startswith("api/"):
        return markdown
    if source is None:
        source = page_path if page_path.startswith(PICTURES) else f"docs/{page_path}"

    folder = posixpath.dirname(source)

    def replaced(match: re.Match[str]) -> str:
        target = _page_of(posixpath.normpath(posixpath.join(folder, match["target"])))
        if target is None:
            return match[0]
        relative = posixpath.relpath(target, posixpath.dirname(page_path) or ".")
        return f"{match['open']}{relative}{match['anchor'] or ''})"

    return LINK.sub(replaced, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Take the script for search in files from the site instead of from a network."""
    local = posixpath.relpath("search_offline.js", posixpath.dirname(page.url) or ".")
    return output.replace("https://unpkg.com/iframe-worker/shim", local)


def _page_of(file: str) -> str | None:
    """The site's page for a file or folder of the repository, None if there is none."""
    if file in PAGES:
        return PAGES[file]
    if file == "docs/tutorial.ipynb":
        return "tutorial.md"
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if file.startswith(PICTURES):
        return file
    parts = file.split("/")
    if parts[0] == BESIDE:
        return f"api/{BESIDE}.md"
    if parts[0] == "spec":
        return "api/index.md"
    if parts[0] == "umpc":
        return f"api/{parts[1]}.md" if parts[1:] and parts[1] in PACKAGES else "api/index.md"
    return None
