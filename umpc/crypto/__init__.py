"""Cryptographic building blocks and the form that every protocol of several parties has.

| file | what it is |
|---|---|
| `field.py` | arithmetic in the field of 2^64 − 2^32 + 1 elements and its quadratic extension |
| `field_transforms.py` | polynomials over both: number-theoretic transforms, values at a point |
| `prg.py` | seeds, the key streams made from them, and the fixed-key hash of GGM trees |
| `prime_field.py` | the field as a ring of shares |
| `ring.py` | arithmetic in Z_{2^w}, and the packing of ring elements and bits |
| `rounds.py` | protocols as generators that broadcast one message a round; the in-memory driver |
| `signing.py` | what a process signs with, and how it checks what others signed |
| `zero_shares.py` | pairwise masks of the nodes' final shares, which sum to zero |

These modules import nothing from umpc but `umpc.errors` and the compiled field. They know no
network, disk or clock. Secrets and randomness are arguments.
"""
