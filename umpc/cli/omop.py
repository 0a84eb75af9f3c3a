"""`umpc table omop`: the SELECT that makes a site's table of an OMOP Common Data Model.

One row is one person of a cohort. Fixed are the period of the cohort, which measurement of it
counts, and its unit. The tables are `person` and `measurement` of version 5.3 or 5.4 of the model,
and a table of cohorts as ATLAS writes it (https://ohdsi.github.io/CommonDataModel/cdm54.html). The
text is SQL that PostgreSQL and DuckDB read alike. Nothing is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from umpc.errors import ConfigError
from umpc.node.table.sql_source import NAME
from umpc.text_file import write_text

COLUMN = r"[A-Za-z_][A-Za-z0-9_]*"
MEASURED = re.compile(rf"({COLUMN})=([0-9]+(?:,[0-9]+)*)")
IN_UNIT = re.compile(rf"({COLUMN})=([0-9]+)(?:\*([0-9]+(?:\.[0-9]+)?))?")
PERSONS = ("person_id", "age", "sex")
"""The columns that every table has."""


@dataclass(frozen=True)
class Measurement:
    """A column of the table.

    concepts: of the measurement. units: concept of a unit → what follows its values in SQL: nothing
    or a multiplication.
    """

    name: str
    concepts: str
    units: dict[str, str]

    def select(self, table: str, *, is_first: bool) -> str:
        """Return the SELECT of its one value for each person. Args: table: of measurements."""
        way = "" if is_first else " DESC"
        values = "\n".join(
            f"                WHEN {unit} THEN m.value_as_number{factor}"
            for unit, factor in self.units.items()
        )
        return f"""\
    -- {"first" if is_first else "last"} in the period; other units and empty values do not count
    SELECT person_id, value FROM (
        SELECT m.person_id,
            CASE m.unit_concept_id
{values}
            END AS value,
            ROW_NUMBER() OVER (
                PARTITION BY m.person_id
                ORDER BY m.measurement_date{way}, m.measurement_datetime{way} NULLS LAST,
                    m.measurement_id{way}
            ) AS place
        FROM {table} AS m JOIN umpc_cohort AS c
            ON m.person_id = c.person_id AND m.measurement_date BETWEEN c.begins AND c.ends
        WHERE m.measurement_concept_id IN ({self.concepts})
            AND m.unit_concept_id IN ({", ".join(self.units)})
            AND m.value_as_number IS NOT NULL
    ) AS ordered WHERE place = 1"""


def select_persons(
    cohort: int, measured: Sequence[Measurement], *, schema: str, cohorts: str, is_first: bool
) -> str:
    """Return the SELECT: one row for each person of the cohort.

    Args: schema: of the model's tables; "" for none. cohorts: the table of cohorts.
    """
    prefix = f"{schema}." if schema else ""
    parts = [
        f"""umpc_cohort AS (
    -- the first period of each person in the cohort
    SELECT person_id, begins, ends FROM (
        SELECT subject_id AS person_id, cohort_start_date AS begins, cohort_end_date AS ends,
            ROW_NUMBER() OVER (
                PARTITION BY subject_id ORDER BY cohort_start_date, cohort_end_date
            ) AS place
        FROM {cohorts} WHERE cohort_definition_id = {cohort}
    ) AS ordered WHERE place = 1
)"""
    ]
    parts += [
        f"umpc_{each.name} AS (\n{each.select(f'{prefix}measurement', is_first=is_first)}\n)"
        for each in measured
    ]
    columns = "".join(f',\n    umpc_{each.name}.value AS "{each.name}"' for each in measured)
    joins = "".join(
        f"\nLEFT JOIN umpc_{each.name} ON umpc_{each.name}.person_id = p.person_id"
        for each in measured
    )
    return f"""WITH {", ".join(parts)}
SELECT p.person_id,
    CAST(EXTRACT(YEAR FROM c.begins) AS INTEGER) - p.year_of_birth AS age,
    CASE p.gender_concept_id WHEN 8507 THEN 'male' WHEN 8532 THEN 'female' END AS sex{columns}
FROM umpc_cohort AS c JOIN {prefix}person AS p ON p.person_id = c.person_id{joins}
ORDER BY p.person_id
"""


@click.group()
def table() -> None:
    """Write the query that makes a site's table."""


def _name(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    """A name of the database, as SQL writes it. Raises: click.BadParameter."""
    if given and not re.fullmatch(NAME, given):
        raise click.BadParameter(f"{given!r}: a name or SCHEMA.NAME was expected")
    return given


@table.command()
@click.option(
    "--cohort", type=click.IntRange(min=0), required=True, help="Its cohort_definition_id."
)
@click.option(
    "--measurement",
    "given",
    multiple=True,
    required=True,
    metavar="NAME=CONCEPT[,CONCEPT…]",
    help="A column of the table, and the measurement_concept_id of its values.",
)
@click.option(
    "--unit",
    "units",
    multiple=True,
    required=True,
    metavar="NAME=CONCEPT[*FACTOR]",
    help="The unit_concept_id of a column's values. Values in another unit do not count, unless a "
    "further --unit says by which factor they become those of the study.",
)
@click.option(
    "--pick",
    type=click.Choice(["first", "last"]),
    required=True,
    help="The measurement that counts, of those within a person's period in the cohort.",
)
@click.option(
    "--into",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file to write.",
)
@click.option("--schema", default="", callback=_name, help="Of the model's tables.")
@click.option(
    "--cohorts",
    default="cohort",
    show_default=True,
    callback=_name,
    help="The table of cohorts, as results.cohort.",
)
@click.option(
    "--view", default="", callback=_name, help="Write CREATE VIEW with this name, not the SELECT."
)
def omop(
    cohort: int,
    given: tuple[str, ...],
    units: tuple[str, ...],
    pick: str,
    into: Path,
    schema: str,
    cohorts: str,
    view: str,
) -> None:
    """Write the SELECT of a table over an OMOP Common Data Model.

    The table has a row for each person of the cohort, with person_id, age in the year in which the
    period begins, sex (male, female), and one column for each --measurement.

    \b
    Example:
      umpc table omop --cohort 7 --measurement crp=3020460 --unit crp=8751 \\
          --pick first --schema cdm --cohorts results.cohort --into view.sql
    """

    measured = [*_measurements(given, units)]
    text = select_persons(
        cohort, measured, schema=schema, cohorts=cohorts, is_first=pick == "first"
    )
    text = f"CREATE VIEW {view} AS\n{text};\n" if view else text
    write_text(into, text, "the SELECT", ConfigError)
    columns = ", ".join((*PERSONS, *(each.name for each in measured)))
    click.echo(f"{into}: {'a view' if view else 'a SELECT'} with the columns {columns}")
    if view:
        click.echo(f'next: let the database run it, and write sql = "{view}" under [data]')
    else:
        click.echo("next: write it between ''' and ''' as sql under [data] of node.toml")


def _measurements(given: Sequence[str], units: Sequence[str]) -> Iterator[Measurement]:
    """Read --measurement and --unit. Raises: click.BadParameter, click.UsageError."""
    names = [*PERSONS]
    known: dict[str, dict[str, str]] = {}
    for text in units:
        found = IN_UNIT.fullmatch(text)
        if found is None:
            raise click.BadParameter(
                f"{text!r}: NAME=CONCEPT was expected, as crp=8751, or NAME=CONCEPT*FACTOR",
                param_hint="--unit",
            )
        known.setdefault(found[1], {})[found[2]] = f" * {found[3]}" if found[3] else ""
    for text in given:
        found = MEASURED.fullmatch(text)
        if found is None or found[1].lower() in names:
            raise click.BadParameter(
                f"{text!r}: NAME=CONCEPT was expected, as crp=3020460, with another name than "
                f"{', '.join(names)}",
                param_hint="--measurement",
            )
        if found[1] not in known:
            raise click.UsageError(f"the unit of {found[1]!r} was expected: --unit {found[1]}=8751")
        names.append(found[1].lower())
        yield Measurement(found[1], found[2], known.pop(found[1]))
    if known:
        raise click.UsageError(f"--unit {next(iter(known))}=…: there is no --measurement of it")
