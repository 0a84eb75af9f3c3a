"""mpc/garbled."""
