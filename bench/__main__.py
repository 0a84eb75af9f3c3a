"""`python -m bench`: every figure, one table after the other."""

from bench import bank, garbling, gates, oblivious

gates.main()
oblivious.main()
garbling.main()
bank.main()
bank.garbled()
