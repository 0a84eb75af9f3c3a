"""The settings of a study of protocol = "ghazi-rounds"."""

from __future__ import annotations

from umpc_papers.local.settings import CellSettings


class GhaziRoundsSettings(CellSettings, frozen=True, kw_only=True, tag="ghazi-rounds"):
    """A third of the records answers after a first look at the others; the rest is "ghazi-ldp"."""
