"""Function secret sharing: what two parties expand from short keys that a dealer made.

| file | what it is |
|---|---|
| `tree.py` | the tree of comparison keys (`masked/dcf.py`) and of point keys |
| `point.py` | point functions of value 1 modulo 2^64, and sums of rotated ones |
"""
