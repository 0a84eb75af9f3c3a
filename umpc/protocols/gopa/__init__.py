"""protocols/gopa."""
