"""protocols/base."""
