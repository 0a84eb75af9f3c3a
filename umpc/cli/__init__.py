"""The `umpc` command.

| file | what it is |
|---|---|
| `entry.py` | where the process begins: Ctrl-C before and after the command |
| `main.py` | the root command: one line and an exit code for each failure; `--version` |
| `enrol.py` | `umpc enrol`: a site gets its certificate by an invitation, sent or listened to |
| `ca.py` | `umpc ca`: certificates, the list of revoked ones, and the list of all |
| `lazy.py` | commands that are loaded when they are used, and those of other packages |
| `serve.py` | `umpc node`, `umpc dealer`: servers that wait for studies; a site's backup |
| `server_options.py` | the options of these commands and of `umpc hub`, their run and metrics |
| `hub.py` | `umpc hub`: the relay that lets all other processes dial out |
| `memory.py` | how a process takes memory and files from the system |
| `status.py` | `umpc node status`: certificate, budget and studies that wait, from a site's files |
| `doctor.py` | `umpc node doctor`: all checks of a site, one line each |
| `doctor_findings.py` | its lines, and the checks of the table's columns and of the policy |
| `approve.py` | `umpc approve`: a person's decisions on studies at a site |
| `node_page.py` | `umpc node page`: a page with pending studies, budget and history |
| `audit.py` | `umpc audit`: show, verify and export a node's audit trail |
| `budget.py` | `umpc budget`: show and verify a node's ledger, set its anchor again; amounts |
| `study.py` | `umpc study`: check, prepare or run a study, or wait until all sites accept it |
| `overlap.py` | `umpc overlap`: how many people two sites share, as a study of one line |
| `people.py` | `umpc people`: invite people, open a study to them, send and check an answer |
| `study_new.py` | `umpc study new`: a study file from a question in words |
| `plan.py` | `umpc plan`: predict what a study costs and how accurate it is |
| `infer.py` | `umpc infer`: intervals and a p-value from a report, at no further ε |
| `kernels.py` | `umpc kernels`: the library's statistics, and the cost of a kernel |
| `kernel_options.py` | its options as kernels, fields and grades |
| `demo.py` | `umpc demo`: a whole study between real processes on this machine |
| `demo_options.py` | the demo's options, and the settings of protocols in help texts |
| `demo_people.py` | its studies of people and of linked rows: their tables, and the commands |
| `table.py` | the demo's table: its own or a file, read, split, and the exact value |
| `omop.py` | `umpc table omop`: the SELECT of a table over an OMOP Common Data Model |
| `shared.py` | options that commands share, and reports as they are printed |
| `check_table.py` | `umpc study check --table`: a study's fields beside a table of one's own |
"""
