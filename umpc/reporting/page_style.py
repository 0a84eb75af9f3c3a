"""The frame of an HTML page, and the style of a report's: light, dark, wide, narrow, on paper."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as escaped

from umpc.reporting.printable import printable


def document(title: str, style: str, body: Iterable[str]) -> str:
    """Return a whole page that asks for nothing. Args: body: lines of HTML, escaped."""
    about = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{about}<title>{escape(title)}</title><style>{style}</style>"
    shown = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{shown}\n</body></html>\n'
    )


def escape(text: str) -> str:
    """Return a text for HTML, in which no character turns the direction of others."""
    return escaped(printable(text))


BASE = """
:root {
  color-scheme: light dark;
  --ink: #1d2733; --quiet: #566573; --paper: #fff; --line: #d9e0e6;
}
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6ebf0; --quiet: #a3b3c2; --paper: #14191f; --line: #323c47;
} }
body {
  font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
}
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.quiet { color: var(--quiet); overflow-wrap: anywhere; }
"""
"""The frame that every page has."""
OWN = """
summary { font-size: 1.1rem; font-weight: 600; margin: 1.5rem 0 .3rem; cursor: pointer; }
.value { font-size: 2.4rem; font-weight: 600; margin: .5rem 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .25rem .75rem .25rem 0; overflow-wrap: anywhere; }
td { min-width: 6em; }
th { text-align: right; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr { border-bottom: 1px solid var(--line); }
svg { width: 100%; height: auto; }
svg text { fill: var(--ink); }
.step { white-space: nowrap; }
@media screen and (max-width: 600px) { .timeline text { font-size: 18px; } }
@media print {
  :root {
    color-scheme: light;
    --ink: #000; --quiet: #444; --paper: #fff; --line: #bbb;
  }
  body { max-width: none; margin: 0; font-size: 10.5pt; }
  details::details-content { content-visibility: visible; display: block; }
  summary { list-style: none; }
  h2, summary { break-after: avoid; }
  tr, svg, p { break-inside: avoid; }
}
"""
"""The report's own."""
STYLE = BASE + OWN
