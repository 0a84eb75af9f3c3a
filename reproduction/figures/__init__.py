"""The papers' figures and tables, measured with this project's protocols: `make figures`.

`python -m reproduction.figures 003-1 003-table-2` makes some of them. `--quick` makes all in a
minute, with few runs, and writes elsewhere.

| file | what it holds |
|---|---|
| `__main__.py` | the command |
| `figure.py` | a figure: its points, their measurement and prediction, the paper's claim |
| `sweep.py` | run all batches of a figure on all cores; continue an interrupted run |
| `store.py` | the finished batches, as lines of JSON |
| `progress.py` | one line for each finished batch |
| `version.py` | the version of the code that measured, and the machine |
| `files.py` | the CSV file, the line of agreement, versions.json |
| `drawing.py` | pictures; only this file needs matplotlib |
| `draws.py` | seeds, so that a figure's random numbers can be drawn again |
| `given.py` | files of data that cannot be part of this project |
| `catalogue.py` | all figures by name |
| `paper001/` | Bell, Bellet, Gascón & Kulkarni 2020 |
| `paper002/` | Chaudhuri, Loh, Pandey & Sarkar 2024: where mechanisms gain over Laplace noise |
| `paper003/` | Sinh & Ramon 2025 |
| `planned/` | the errors that `umpc plan` predicts, beside whole runs |

To add a figure, write a `Figure` in a file of its own and add it to its package's FIGURES.
"""
