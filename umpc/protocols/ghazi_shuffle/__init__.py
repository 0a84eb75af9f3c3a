"""protocols/ghazi_shuffle."""
