"""The other protocols of the papers, beside U-MPC and the grid of `umpc`.

Each is found through an entry point of the group `umpc.protocols`, as any package may bring one
(CONTRIBUTING.md). `umpc` names none of them.

| folder | what it is |
|---|---|
| `bell_2pc/` | `bell-2pc`: a noisy value of every pair (Bell et al. 2020) |
| `local/` | `bell-ldp`, `bell-auc`, `ghazi-ldp`, `local-mean`: records randomised at their node |
| `ghazi_rounds/` | `ghazi-rounds`: a local protocol with a question after a first look |
| `ghazi_shuffle/` | `ghazi-shuffle`: noisy counts through two shufflers |
| `shuffler/` | the shuffler's process |
| `gopa/` | `gopa`: a mean under noise that cancels between nodes |
| `central/` | `central`: a trusted curator, with the estimators of Chaudhuri et al. 2024 |
| `hajek_grid/` | `hajek-grid`: the grid, with noise for a private bound of the local sensitivity |
| `training/` | `umpc train`: a model by gradients of a pairwise loss |
| `asking.py` | the messages of a local protocol that asks one question |
| `exact_sampling.py` | arrays of exact draws from one seed: coins, integers, randomised response |
| `testing.py` | their steps that a test replaces by name |
| `commands.py` | the commands `umpc train` and `umpc shuffler` |
"""
