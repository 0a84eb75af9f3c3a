"""Planning: what a study will cost and miss, before any site is asked.

| file | what it holds |
|---|---|
| `prediction.py` | a hypothetical attempt, from a study and numbers of records |
| `reference_table.py` | a table like the sites' own, and errors over it |
| `seconds.py` | seconds and memory, from counted delays, bytes and trials of this machine |
| `study_plan.py` | a study's plan, beside the plan of the other way to run it |
| `alternatives.py` | the same statistic by every protocol and tuned, and the best of them |
"""
