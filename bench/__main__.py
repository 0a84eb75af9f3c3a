"""`python -m bench`: every figure, one table after the other."""

from bench import bank, gates, oblivious

gates.main()
oblivious.main()
bank.main()
