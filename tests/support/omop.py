"""A made-up OMOP Common Data Model: seven people, and what each SELECT must find of them.

The tables have columns of version 5.4, those that a SELECT of umpc names and a few of the others.
"""

from __future__ import annotations

CRP, MG_L, MG_DL = 3020460, 8751, 8840
MALE, FEMALE = 8507, 8532
SETUP = (
    "CREATE SCHEMA cdm",
    "CREATE SCHEMA results",
    "CREATE TABLE cdm.person (person_id integer, gender_concept_id integer, year_of_birth integer,"
    " month_of_birth integer, birth_datetime timestamp, race_concept_id integer)",
    "CREATE TABLE cdm.measurement (measurement_id integer, person_id integer,"
    " measurement_concept_id integer, measurement_date date, measurement_datetime timestamp,"
    " measurement_type_concept_id integer, operator_concept_id integer, value_as_number numeric,"
    " value_as_concept_id integer, unit_concept_id integer)",
    "CREATE TABLE results.cohort (cohort_definition_id integer, subject_id integer,"
    " cohort_start_date date, cohort_end_date date)",
)
PERSONS = (
    (1, MALE, 1970),
    (2, FEMALE, 1950),
    (3, MALE, 1980),
    (4, FEMALE, 1990),
    (5, FEMALE, 1991),
    (6, MALE, 1960),
    (7, 0, 1961),
)
COHORT = (
    (7, 1, "2020-03-01", "2020-12-31"),
    (7, 2, "2022-01-01", "2022-12-31"),  # the second of two periods
    (7, 2, "2020-01-01", "2020-06-30"),
    (7, 3, "2020-01-01", "2020-12-31"),
    (7, 4, "2020-01-01", "2020-12-31"),
    (8, 5, "2020-01-01", "2020-12-31"),  # another cohort
    (7, 6, "2020-01-01", "2020-12-31"),
    (7, 7, "2020-01-01", "2020-12-31"),
)
MEASUREMENTS = (
    (1, CRP, "2020-02-29", None, 99, MG_L),  # before the period
    (1, CRP, "2020-05-02", None, 9, MG_L),
    (1, CRP, "2020-05-01", None, 5, MG_L),
    (1, 3004410, "2020-03-01", None, 6.5, 8554),  # another measurement
    (2, CRP, "2022-05-01", None, 70, MG_L),
    (3, CRP, "2020-04-01", None, 1.25, MG_DL),
    (4, CRP, "2020-04-01", "2020-04-01 17:00", 22, MG_L),
    (4, CRP, "2020-04-01", "2020-04-01 08:00", 11.5, MG_L),
    (4, CRP, "2020-04-01", None, 33, MG_L),  # at an unknown time of the day
    (5, CRP, "2020-04-01", None, 44, MG_L),
    (6, CRP, "2020-04-01", None, None, MG_L),  # ordered, without a result
    (6, CRP, "2020-04-02", None, 3, MG_L),
    (7, CRP, "2020-04-02", None, 8, None),  # in an unknown unit
)
FIRST = (
    (1, 50, "male", 5),
    (2, 70, "female", None),
    (3, 40, "male", None),
    (4, 30, "female", 11.5),
    (6, 60, "male", 3),
    (7, 59, None, None),
)
"""person_id, age, sex and crp, in mg/L alone."""
LAST = tuple((*row[:3], {1: 9, 4: 22, 3: 12.5}.get(row[0], row[3])) for row in FIRST)
"""The last one, also in mg/dL, of which one is ten of the study's."""


def statements() -> list[str]:
    """Return what makes the tables, for any database."""
    found = [*SETUP]
    found += [
        "INSERT INTO cdm.person (person_id, gender_concept_id, year_of_birth)"
        f" VALUES ({person}, {gender}, {year})"
        for person, gender, year in PERSONS
    ]
    found += [
        f"INSERT INTO results.cohort VALUES ({cohort}, {person}, '{begins}', '{ends}')"
        for cohort, person, begins, ends in COHORT
    ]
    found += [
        "INSERT INTO cdm.measurement (measurement_id, person_id, measurement_concept_id,"
        " measurement_date, measurement_datetime, value_as_number, unit_concept_id)"
        f" VALUES ({number}, {', '.join(map(_literal, row))})"
        for number, row in enumerate(MEASUREMENTS, 1)
    ]
    return found


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)
