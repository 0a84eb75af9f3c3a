"""mpc/transfers."""
