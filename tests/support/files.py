"""Files as a site's administrator makes them."""

from __future__ import annotations

from pathlib import Path


def private_file(path: Path, text: str) -> Path:
    """Write a file that nobody else may read, and return its path."""
    path.write_text(text)
    path.chmod(0o600)
    return path


def key_file(path: Path, key: str, secret: str) -> Path:
    """Write an object store's credentials, and return their path."""
    keys = f"aws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    return private_file(path, f"[default]\n{keys}")
