"""A report for people and for programs: a page, a picture, and JSON with a schema.

| file | what it is |
|---|---|
| `page.py` | a report as one HTML file, and its picture of the intervals |
| `json_document.py` | a report as a JSON document of a versioned schema, with its inference |
| `rows.py` | a report in words and rows, from which terminal and page are written |

`report.schema.json` is the schema. `make settings` writes it again.
"""
