"""protocols/ghazi_rounds."""
