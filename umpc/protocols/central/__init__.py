"""protocols/central."""
