"""protocols/u_mpc."""
