"""The style of a report's page: light and dark, wide and narrow, screen and paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1d2733; --quiet: #5b6b7b; --paper: #fff; --line: #e3e8ed; --code: #f2f5f7;
}
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6ebf0; --quiet: #9fb0c0; --paper: #14191f; --line: #2b343e; --code: #1f2730;
} }
body {
  font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
}
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
summary { font-size: 1.1rem; font-weight: 600; margin: 1.5rem 0 .3rem; cursor: pointer; }
.quiet { color: var(--quiet); overflow-wrap: anywhere; }
.value { font-size: 2.4rem; font-weight: 600; margin: .5rem 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .25rem .75rem .25rem 0; overflow-wrap: anywhere; }
td { min-width: 6em; }
th { text-align: right; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr { border-bottom: 1px solid var(--line); }
code { background: var(--code); padding: .1rem .3rem; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; }
svg text { fill: var(--ink); }
.step { white-space: nowrap; }
@media screen and (max-width: 600px) { .timeline text { font-size: 18px; } }
@media print {
  :root {
    color-scheme: light;
    --ink: #000; --quiet: #444; --paper: #fff; --line: #bbb; --code: #fff;
  }
  body { max-width: none; margin: 0; font-size: 10.5pt; }
  details::details-content { content-visibility: visible; display: block; }
  summary { list-style: none; }
  h2, summary { break-after: avoid; }
  tr, svg, p { break-inside: avoid; }
}
"""
