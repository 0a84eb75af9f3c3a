"""U-MPC: noisy sums over E under secret sharing (Sinh & Ramon 2025, protocol 3.1).

| file | what it holds |
|---|---|
| `protocol.py` | `UMpc`, the protocol object, and the coordinator's side |
| `settings.py` | the settings of a study, their usual values and rules |
| `noise_binding.py` | the noise of each sum, and the attempt in a ring that holds both |
| `node.py` | a node's side: noise, seed and channels, edges in cells, the noisy share |
| `theory.py` | the predicted error, how many edges an error needs or a budget pays for |
"""
