"""All figures by name. Each package has a tuple FIGURES, and PAPERS lists the packages."""

from __future__ import annotations

from reproduction.figures import paper001, paper002, paper003, planned
from reproduction.figures.figure import Figure

PAPERS = (paper001, paper002, paper003, planned)


def all_figures() -> dict[str, Figure]:
    return {figure.name: figure for paper in PAPERS for figure in paper.FIGURES}


def chosen(names: list[str]) -> list[Figure]:
    """The figures with these names; all figures if there are none.

    "003" stands for all figures of a paper, and "003-1" for "003-figure-1". "001-3" also stands for
    the same figure on other data, "001-figure-3-substitute".

    Raises: SystemExit for an unknown name.
    """
    figures = all_figures()
    found: dict[str, Figure] = {}
    for name in names or list(figures):
        paper, _, rest = name.partition("-")
        fitting = [
            each
            for each in figures
            if each == name or f"{each}-".startswith(f"{paper}-figure-{rest}-")
        ]
        fitting += [each for each in figures if not rest and each.startswith(f"{paper}-")]
        if not fitting:
            raise SystemExit(f"there is no figure {name}; there are {', '.join(figures)}")
        found |= {each: figures[each] for each in fitting}
    return list(found.values())
