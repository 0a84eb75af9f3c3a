"""How many people two sites share: Diffie–Hellman on hashed texts, and noise (docs/overlap.md).

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object, and the coordinator's side |
| `settings.py` | the settings of a study, its rules, and the law of the noise |
| `messages.py` | the attempt, its points, and the number from both released lists |
| `node.py` | a site's side: points, dummies, and the list that it releases |
"""
