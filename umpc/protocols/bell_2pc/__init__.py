"""protocols/bell_2pc."""
