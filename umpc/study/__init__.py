"""The study: the document that all parties agree on, and what follows from it before any data.

| file | what it holds |
|---|---|
| `document.py` | `Study`: its keys, its identity, and what follows from the document |
| `settings.py` | `Settings`: the base of all protocols' settings |
| `parts.py` | participants, fields, bins, exact numbers as text, parts of several values, courses |
| `rules.py` | the rules that every study must fulfil |
| `computation.py` | what a study computes, the hash by which a site allows it, and former hashes |
| `attempt.py` | one attempt at a study: what all signed, joint seed, identity, survivors |
| `sizes.py` | numbers of records, edges and degrees, known before the joint seed |
| `cost.py` | predicted rounds and bytes |
| `messages.py` | what coordinator and node say to each other |
| `report.py` | the result: estimate, errors, cost |
| `making_report.py` | the report and its interval, from what was released and what the run took |
"""
