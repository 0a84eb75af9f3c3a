"""node/budget."""
