"""The study: the document that all parties agree on, and what follows from it before any data.

| file | what it holds |
|---|---|
| `document.py` | `Study`: its keys, its identity, and what follows from the document |
| `settings.py` | `Settings`: the base of all protocols' settings |
| `parts.py` | participants, fields, bins, and exact numbers as text |
| `several.py` | several statistics and strata in one study, and their parts of ε |
| `rules.py` | the rules that every study must fulfil |
| `computation.py` | what a study computes, and the hash by which a site allows it |
| `former.py` | the identities that a study had under former tags |
| `attempt.py` | one attempt at a study: members, joint seed, identity |
| `members.py` | the checks of what all nodes signed |
| `sizes.py` | numbers of records, edges and degrees, known before the joint seed |
| `course.py` | several studies that pay once, such as the steps of a training |
| `cost.py` | predicted rounds and bytes |
| `messages.py` | what coordinator and node say to each other |
| `interval.py` | the interval for the statistic on all sets, from what was released |
| `report.py` | the result: estimate, errors, cost |
| `making_report.py` | the report, from what was released and what the run took |
"""
