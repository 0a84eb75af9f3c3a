"""node/attempts."""
