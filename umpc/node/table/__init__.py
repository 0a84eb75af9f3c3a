"""A site's table: its file or query, its text, its columns in SQL, and the integers they become.

| file | what it holds |
|---|---|
| `source.py` | a table's place, format and text; errors that name the node and show no value |
| `sql_source.py` | the address and the query of a table in a database |
| `object_store.py` | objects of a store with the S3 API, read into memory |
| `database.py` | a query's columns, read from PostgreSQL or SQLite |
| `duckdb_file.py` | a query's columns, read from a DuckDB database |
| `conversions.py` | the one table of conversions: a value as a number, a text, or missing |
| `columns.py` | the columns of a file or of a query, as expressions in SQL |
| `batch.py` | the study's fields of some rows, as every reader returns them |
| `reading.py` | the query that reads the study's fields with DuckDB |
| `survey.py` | a table's columns, rows, types and spellings, for its own administrator |
| `units.py` | values as integers in units of the resolution, and the values that do not fit |
| `fingerprint.py` | whether two studies asked about the same data |
| `resolution.py` | the resolution that holds every value of a column |
"""
