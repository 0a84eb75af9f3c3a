"""`vector`: a vector of means over one E, under one joint sensitivity.

| file | what it is |
|---|---|
| `protocol.py` | the protocol object |
| `settings.py` | what a study says, and its rules |
| `losses.py` | gradients of pairwise losses as kernels, and how far a record moves them |
| `noise_binding.py` | scales of the sums, their noise, and the attempt |
"""
