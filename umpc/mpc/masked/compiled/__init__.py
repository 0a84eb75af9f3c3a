"""A chunk's computation as programs of the compiled kernel, for the plans that it serves.

| file | what it is |
|---|---|
| `rows.py` | rows that steps share, sources, and which plans are served |
| `dealing.py` | the dealer's program |
| `layers.py` | an owner's programs: one for each layer, and one for the sums |
| `rounds.py` | an owner's rounds, which run them |

`umpc/native/programs.py` says what a program is. Everything here gives the bytes of `dealing.py`
and `evaluation.py` of the folder above. Those are the reference, and they run where there is no
compiled kernel, for several chunks at once, and for plans with comparison keys, coins or opened
numbers.
"""
