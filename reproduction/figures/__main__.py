"""`python -m reproduction.figures`: the papers' figures and tables, into reproduction/pictures.

python -m reproduction.figures [NAME …] [--quick] [--redraw] [--data NAME=FILE]
                        [--compute dask://HOST:PORT --compute-tls FOLDER]

An interrupted run continues where it stopped. --quick: a run of a minute with few runs a point and
no verdict, into build/figures-quick. --redraw: draw the stored results again, whatever code
measured them; versions.json says which code. --data: a table, which is no part of this project.
Only figures of generated records and of published tables, known by their sha256, are written into
reproduction/pictures. Those of made-up or other tables go into build/figures, and say so.
--compute: the workers of a Dask cluster measure. Start them in this checkout, as docs/cluster.md
says, with OMP_NUM_THREADS=1 and --nthreads 1.
The figures are the same, because each batch has a seed of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from reproduction.figures import given
from reproduction.figures.catalogue import chosen
from reproduction.figures.figure import Agreement, Figure, Row
from reproduction.figures.files import write_agreement, write_csv, write_versions
from reproduction.figures.progress import shown
from reproduction.figures.store import Store
from reproduction.figures.sweep import entries_of, sweep
from reproduction.figures.version import ROOT, code_version, environment


def make(figure: Figure, quick: bool, redraw: bool, jobs: int = -1, cluster: Any = None) -> float:
    """Measure, draw and write one figure. Return the seconds that passed."""
    started = time.monotonic()
    build = ROOT / "build" / ("figures-quick" if quick else "figures")
    digest, note = "", ""
    if figure.data:
        digest, note = given.digest_of(figure.data), given.note_of(figure.data)
    is_kept = not (quick or note)
    pictures = ROOT / "reproduction" / "pictures" if is_kept else build / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    path = build / f"{figure.name}.jsonl"
    store = Store(path, code_version(), any_version=redraw, data=digest)
    rows = sweep(figure, store, quick, jobs, cluster)
    points = figure.points(quick)
    figure.draw(rows, pictures / f"{figure.name}.png", note)
    write_csv(figure, rows, pictures / f"{figure.name}.csv", note)
    agreement = agreement_of(figure, rows, quick, note)
    write_agreement(figure, agreement, pictures / "agreement.md")
    entries = entries_of(figure, store, points)
    facts = {
        "measured by": sorted({entry["version"] for entry in entries}),
        "date": max(entry["date"] for entry in entries),
        "seeds": "SHA-256 of figure, point and batch 0 to "
        f"{max(point.batches for point in points) - 1}: draws.py",
        "processor seconds": round(sum(entry["seconds"] for entry in entries), 1),
    } | ({"table": note or figure.data, "sha256": digest} if digest else {})
    write_versions(figure, environment() | facts, pictures / "versions.json")
    passed = time.monotonic() - started
    print(
        f"{figure.name}: {shown(passed)} now, {facts['processor seconds']:.0f} s of processors in "
        "all",
        flush=True,
    )
    print(f"    {figure.claim}\n    {agreement.verdict}: {agreement.reason}\n", flush=True)
    return passed


def agreement_of(figure: Figure, rows: Sequence[Row], quick: bool, note: str) -> Agreement:
    """The line of agreement. Few runs give no verdict, and a made-up table none on the paper.

    Args: note: what the table is, where it is not the published one.
    """
    if quick:
        return Agreement("no verdict", "; ".join(filter(None, (note, "a quick run: too few runs"))))
    verdict, reason = figure.agreement(rows)
    if figure.data and given.is_made_up(figure.data):
        return Agreement("made-up table, no verdict", f"{note}. {reason}")
    return Agreement(verdict, f"{note}. {reason}" if note else reason)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.figures", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "names", nargs="*", help='such as 003-1 or 003-table-2, or "003" for all of a paper'
    )
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run, no verdicts, into build/figures-quick"
    )
    parser.add_argument("--redraw", action="store_true", help="draw again what is stored")
    parser.add_argument(
        "--data", action="append", default=[], metavar="NAME=FILE", help=", ".join(given.EXPECTED)
    )
    parser.add_argument("--compute", metavar="dask://HOST:PORT", help="measure on this cluster")
    parser.add_argument("--compute-tls", metavar="FOLDER", help="ca.pem, cert.pem and key.pem")
    arguments = parser.parse_args()
    if bool(arguments.compute) != bool(arguments.compute_tls):
        parser.error("--compute and --compute-tls go together")
    if arguments.compute and arguments.data:
        parser.error("workers do not have the file of --data: measure its figures on this machine")
    given.give(arguments.data)
    import matplotlib

    matplotlib.use("Agg")
    figures = list(filter(has_its_data, chosen(arguments.names)))
    cluster = client_of(arguments.compute, arguments.compute_tls) if arguments.compute else None
    seconds = [
        make(figure, arguments.quick, arguments.redraw, cluster=cluster) for figure in figures
    ]
    print(f"{len(seconds)} figures in {shown(sum(seconds))}")


def client_of(compute: str, tls: str) -> Any:
    """Return a client of a cluster, over mutual TLS."""
    from distributed import Client, Security

    security = Security(
        tls_ca_file=f"{tls}/ca.pem",
        tls_client_cert=f"{tls}/cert.pem",
        tls_client_key=f"{tls}/key.pem",
        require_encryption=True,
    )
    address = compute.replace("dask://", "tls://")
    return Client(address, security=security, set_as_default=False)


def has_its_data(figure: Figure) -> bool:
    if figure.data and not given.can_be_measured(figure.data):
        print(
            f"{figure.name} is left out: it needs --data {figure.data}=FILE, "
            f"{given.EXPECTED[figure.data]}\n"
        )
        return False
    return True


if __name__ == "__main__":
    main()
