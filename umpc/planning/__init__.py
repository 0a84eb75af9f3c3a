"""Planning: what a study will cost and miss, before any site is asked.

| file | what it holds |
|---|---|
| `prediction.py` | a hypothetical attempt, from a study and numbers of records |
| `reference_table.py` | a table like the sites' own, and errors over it |
| `machine.py` | this machine's seconds for an edge, from chunks of a trial |
| `seconds.py` | seconds and memory, from counted delays, bytes and a trial run |
| `study_plan.py` | a study's plan, beside the plan of the other way to run it |
| `alternatives.py` | the same statistic by every protocol, and the best one for given targets |
| `tuning.py` | the bins, levels or pairings with the least error over a table |
| `forecast.py` | what a run that is about to begin will take |
"""
