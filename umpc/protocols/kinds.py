"""The names that a study chooses from."""

from umpc.protocols.central.settings import CENTRAL, MECHANISMS
from umpc.protocols.gopa.settings import GOPA
from umpc.protocols.local.settings import ONE_MESSAGE, SHUFFLED

PROTOCOLS = ("u-mpc", "bell-2pc", *ONE_MESSAGE, *SHUFFLED, GOPA, CENTRAL)
PAIR_NOISES = ("pair_laplace", "randomised_response")
OF_OTHERS = ("local", "shuffled", GOPA, *MECHANISMS)
"""Noises of protocols without edges between nodes."""
NOISES = ("distributed", "in_mpc", "skellam", "binomial", *PAIR_NOISES, *OF_OTHERS)
BACKENDS = ("shared", "garbled", "none")
PREPROCESSINGS = ("dealer", "none")
