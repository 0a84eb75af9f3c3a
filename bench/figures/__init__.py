"""The papers' figures and tables, measured with this project's protocols: `make figures`.

`python -m bench.figures 003-1 003-table-2` does some of them, `--quick` a smoke run of a minute that writes elsewhere.

| file | what it holds |
|---|---|
| `figure.py` | what a figure is: its points, what measures and predicts one, the paper's claim, how it is drawn |
| `sweep.py` | all batches of a figure over all cores; an interrupted run goes on where it was |
| `store.py` | what has been measured, as lines of JSON |
| `progress.py` | one line per finished batch |
| `version.py` | which code measured, on what |
| `files.py` | the CSV, the line of agreement, versions.json |
| `drawing.py` | pictures; the only file that needs matplotlib |
| `draws.py` | seeds: a figure's random numbers can be drawn again |
| `given.py` | files of data that cannot be part of this project |
| `catalogue.py` | all figures by name |
| `paper001/` | Bell, Bellet, Gascón & Kulkarni 2020 |
| `paper003/` | Sinh & Ramon 2025 |

A figure more is an object in a file of its own, and a line in the catalogue.
"""
