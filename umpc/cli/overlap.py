"""`umpc overlap`: how many people two sites share, as a study of one line."""

from __future__ import annotations

from pathlib import Path

import click

from umpc.cli.shared import FILE, FORMAT, print_report
from umpc.errors import StudyError


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--site", multiple=True, help="A site's node, as north=north.example.org:7100; name two."
)
@click.option("--person", help="The column that tells people apart, with the same texts at both.")
@click.option("--epsilon", show_default="1", help="The privacy of the number.")
@click.option(
    "--identity", default="coordinator", show_default=True, help="The coordinator's folder."
)
@FORMAT
def overlap(
    file: Path,
    site: tuple[str, ...],
    person: str | None,
    epsilon: str | None,
    identity: str,
    style: str,
) -> None:
    """Tell how many people two sites share, with noise, before a study of both.

    With --site, it writes the study into FILE, whose name is the study's, and runs it. Without, it
    runs FILE: the same number again, at no cost. Both sites charge epsilon. The sites must be
    honest: one that lies may count exactly how many of a list that it makes are at the other one,
    or learn who somebody there is.
    Texts are compared as they are, so both sites must write them in one form.

    \b
    umpc overlap overlap.toml --site north=north.example.org:7100 \\
        --site south=south.example.org:7100 --person patient --epsilon 0.5
    umpc plan study.toml --records 100000,100000 --shared 3012
    """
    from umpc.api.study import ProposedStudy
    from umpc.cli.demo_options import named_value
    from umpc.coordinator.studyfile_text import study_text
    from umpc.text_file import check_new

    if site:
        check_new(file, failure=StudyError)
        if len(site) != 2 or person is None:
            raise StudyError("two sites and a column were expected; give --site twice and --person")
        entries = {
            "name": file.stem,
            "protocol": "overlap",
            "person": person,
            "epsilon": epsilon or "1",
            "identity": identity,
            "nodes": [
                {"name": name, "address": address}
                for name, address in (named_value("--site", each) for each in site)
            ],
        }
        file.write_text(study_text(entries, {}), encoding="utf-8")
    elif person is not None or epsilon is not None:
        raise StudyError(
            f"--person and --epsilon go with --site; without it {file} says both. Leave them out, "
            "or name both sites and a new file"
        )
    study = ProposedStudy.load(file)
    if (protocol := study.file.protocol.name) != "overlap":
        raise StudyError(
            f'a study of protocol = "overlap" was expected in {file}, and it has {protocol!r}; run '
            "it with `umpc study run`, or name another file"
        )
    report = study.report(progress=style != "json")
    print_report(report, style)
    if style == "json" or report.estimate is None or report.low is None or report.high is None:
        return
    # noise may move the number beyond what two sites can share; a replay knows no site's records
    most = min([report.records // 2, *report.records_by_node])
    shared, low, high = (
        min(max(round(each), 0), most) for each in (report.estimate, report.low, report.high)
    )
    click.echo(
        f"{' and '.join(node.name for node in study.document.nodes)} share {shared:,} people; "
        f"95 % interval {low:,} to {high:,}\n"
        "n of a study of both sites counts such a person twice\n"
        "with epsilon = E at each site, the promise to such a person is 2E\n"
        f"for a study of both: umpc plan study.toml --records … --shared {shared}"
    )
