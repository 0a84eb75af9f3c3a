"""protocols/local."""
