"""mpc/masked."""
