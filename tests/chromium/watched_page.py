"""A page in the browser, with everything that it asks for and complains of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page


@contextmanager
def watched_page(browser: Browser, width: int, scheme: str) -> Iterator[tuple[Page, list[str]]]:
    """Provide an empty page and the addresses that it asks for. It may complain of nothing."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield page, asked
    finally:
        context.close()
    assert complaints == []
