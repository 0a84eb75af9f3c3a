"""`python -m bench`: every figure, one table after the other."""

from bench import bank, gates

gates.main()
bank.main()
