"""The study: the document that all parties agree on, and what follows from it before any data.

| file | what it holds |
|---|---|
| `document_keys.py` | `StudyKeys`: the keys of all studies, and one `settings` of a protocol |
| `document.py` | `Study`: its keys, its identity, and what follows from the document |
| `decoding.py` | a study from the bytes that came, or their refusal |
| `settings.py` | `Settings`: the base of all protocols' settings |
| `parts.py` | participants, fields, bins, and exact numbers as text |
| `several.py` | several statistics and strata in one study, and their parts of ε |
| `grades.py` | the grades of promise: what holds if participants lie |
| `rules.py` | the rules that every study must fulfil |
| `field_rules.py` | the library's rules for a study's fields, and what its classes mean |
| `computation.py` | what a study computes, and the hash by which a site allows it |
| `former.py` | the identities that a study had under former tags |
| `attempt.py` | one attempt at a study: members, joint seed, identity |
| `statements.py` | what each node signs, the joint seed and the attempt's identity |
| `members.py` | the checks of what all nodes signed |
| `survivors.py` | a study over the nodes that are left when others were lost |
| `sizes.py` | numbers of records, edges and degrees, known before the joint seed |
| `course.py` | several studies that pay once, such as the steps of a training |
| `possible.py` | the sums that a study can release, and the refusal of others |
| `misspelt.py` | the nearest known name and the line of a misspelt key |
| `cost.py` | predicted rounds and bytes |
| `messages.py` | what coordinator and node say to each other |
| `frames.py` | one message between nodes, as it travels |
| `interval.py` | the interval for the statistic on all sets, from what was released |
| `measured.py` | the cost of a run as it was measured: times, rounds and bytes |
| `report.py` | the result: estimate, errors, cost |
| `making_report.py` | the report, from what was released and what the run took |
"""
