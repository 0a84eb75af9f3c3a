"""The `umpc` command.

| file | what it is |
|---|---|
| `main.py` | the root command: one line and an exit code for each failure |
| `ca.py` | `umpc ca`: certificates, and the list of revoked ones |
| `serve.py` | `umpc node`, `umpc dealer`, `umpc shuffler`: servers that wait for studies |
| `hub.py` | `umpc hub`: the relay that lets all other processes dial out |
| `memory.py` | how a process takes memory from the system |
| `status.py` | `umpc node status`: certificate, budget and studies that wait, from a site's files |
| `doctor.py` | `umpc node doctor`: all checks of a site, one line each |
| `doctor_finding.py` | its lines, and the exit code |
| `doctor_site.py` | its checks of the site's files: table, disk, ledger, certificate |
| `doctor_policy.py` | the policy in one line |
| `doctor_network.py` | its checks of the own address and of each peer |
| `approve.py` | `umpc approve`: a person's decisions on studies at a site |
| `budget.py` | `umpc budget`: show and verify a node's ledger, and set its anchor again |
| `study.py` | `umpc study`: check, prepare or run a study |
| `train.py` | `umpc train`: a model by gradients of a pairwise loss |
| `train_run.py` | its run as the coordinator, and its public table |
| `train_demo.py` | its demo: a table split over processes on this machine |
| `plan.py` | `umpc plan`: predict what a study costs and how accurate it is |
| `kernels.py` | `umpc kernels`: the library's statistics, and the cost of a kernel |
| `kernel_options.py` | its options as kernels, fields and grades |
| `kernel_cost.py` | the cost of kernels, in lines of text |
| `demo.py` | `umpc demo`: a whole study between real processes on this machine |
| `demo_options.py` | the demo's options, and the sections of its help text |
| `demo_run.py` | the demo's run: its study, its processes, its report |
| `deployment.py` | start, await and stop the demo's processes |
| `fork_server.py` | one process that imports everything and forks the demo's processes |
| `table.py` | the demo's table: read it, split it, compute the exact value |
| `own_table.py` | the demo's own table, from a file of scikit-learn |
| `check_table.py` | `umpc study check --table`: a study's fields beside a table of one's own |
| `settings_help.py` | the list of every protocol's settings for help texts |
| `show.py` | a report as a table or as JSON |
"""
