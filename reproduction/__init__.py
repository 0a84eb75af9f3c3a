"""The papers' figures, measured again, and their baselines: programs beside umpc and umpc_papers.

| file | what it holds |
|---|---|
| `figures/` | `make figures`: the papers' figures and tables, each with its claim |
| `baselines/` | mechanisms of the literature that no command of umpc uses |
| `pictures/` | pictures and CSV files of the figures, and which claims agree |
"""
