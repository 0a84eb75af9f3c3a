"""`vector`: a vector of means over one E, under one joint sensitivity.

| file | what it is |
|---|---|
| `protocol.py` | the protocol object, its noise and both sides |
| `settings.py` | what a study says, and its rules |
| `losses.py` | clipping, and gradients of pairwise losses as kernels |
"""
