"""The `umpc` command.

| file | what it is |
|---|---|
| `entry.py` | where the process begins: Ctrl-C before and after the command |
| `main.py` | the root command: one line and an exit code for each failure |
| `version.py` | `umpc --version`: the versions, the sign gate that runs, the libraries |
| `enrol.py` | `umpc enrol`: a site gets its certificate by an invitation |
| `enrol_listen.py` | `umpc enrol listen`, `decline` and `members`: at the authority |
| `enrol_files.py` | the texts that its commands read, and the node.toml that it writes |
| `ca_list.py` | `umpc ca list`: all certificates, invitations and requests of an authority |
| `ca.py` | `umpc ca`: certificates, and the list of revoked ones |
| `lazy.py` | commands that are loaded when they are used, and those of other packages |
| `serve.py` | `umpc node`, `umpc dealer`: servers that wait for studies |
| `server_options.py` | the options of these commands and of `umpc hub` |
| `own_site.py` | the parts of a site that `umpc node start` opens |
| `hub.py` | `umpc hub`: the relay that lets all other processes dial out |
| `monitor.py` | a server's metrics and health, if its administrator wants them |
| `memory.py` | how a process takes memory and files from the system |
| `amounts.py` | amounts of ε and δ in a few characters, for people |
| `status.py` | `umpc node status`: certificate, budget and studies that wait, from a site's files |
| `backup.py` | `umpc node backup` and `restore`: a site's files in one archive, and back |
| `doctor.py` | `umpc node doctor`: all checks of a site, one line each |
| `doctor_finding.py` | its lines, and the exit code |
| `doctor_site.py` | its checks of the site's files: table, disk, ledger, certificate |
| `doctor_columns.py` | its checks of the table's columns and of how numbers are written |
| `doctor_policy.py` | the policy in one line |
| `doctor_network.py` | its checks of the own address and of each peer |
| `approve.py` | `umpc approve`: a person's decisions on studies at a site |
| `node_page.py` | `umpc node page`: a page with pending studies, budget and history |
| `audit.py` | `umpc audit`: show, verify and export a node's audit trail |
| `budget.py` | `umpc budget`: show and verify a node's ledger, and set its anchor again |
| `study.py` | `umpc study`: check, prepare, run or watch a study |
| `watch.py` | `umpc study watch`: how far a run is, and who is connected |
| `wait.py` | `umpc study run --wait`: a run as soon as every site has accepted |
| `plan.py` | `umpc plan`: predict what a study costs and how accurate it is |
| `infer.py` | `umpc infer`: intervals and a p-value from a report, at no further ε |
| `kernels.py` | `umpc kernels`: the library's statistics, and the cost of a kernel |
| `kernel_options.py` | its options as kernels, fields and grades |
| `demo.py` | `umpc demo`: a whole study between real processes on this machine |
| `demo_options.py` | the demo's options, and the sections of its help text |
| `table.py` | the demo's table: read it, split it, compute the exact value |
| `own_table.py` | the demo's own table, from a file of scikit-learn |
| `paths.py` | the types of options and arguments that name a file or a folder |
| `dataset_option.py` | the options --config and --dataset of commands at a site |
| `check_table.py` | `umpc study check --table`: a study's fields beside a table of one's own |
| `settings_help.py` | the list of every protocol's settings for help texts |
| `show.py` | a report as a table or as JSON, and the files of its other forms |
"""
