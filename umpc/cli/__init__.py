"""The `umpc` command.

| file | what it is |
|---|---|
| `main.py` | the root command; errors into one line and an exit code |
| `ca.py` | `umpc ca …`: certificates |
| `serve.py` | `umpc node …` and `umpc dealer …`: processes that wait for studies |
| `approve.py` | `umpc approve …`: studies that wait for a person at the site |
| `budget.py` | `umpc budget …`: what a node's ledger says, whether it verifies, and its anchor |
| `study.py` | `umpc study …`: run or check a study |
| `plan.py` | `umpc plan`: what a study will take over a given line |
| `prediction.py` | what a study will cost, before anybody is asked |
| `kernels.py` | `umpc kernels`: the library, and what one's own kernel costs |
| `demo.py` | `umpc demo`: everything on this machine |
| `deployment.py` | the demo's processes: starting, waiting for, stopping |
| `table.py` | the demo's table: reading, splitting, the exact value |
| `page.py` | a report as one HTML file |
| `show.py` | progress, and a report as a table or as JSON |
"""
