"""A report for people and for programs: a page, a picture, Markdown, and JSON with a schema.

| file | what it is |
|---|---|
| `page.py` | a report as one HTML file |
| `picture.py` | the estimate with its intervals, as an SVG picture |
| `json_document.py` | a report as a JSON document of a versioned schema, with its inference |
| `rows.py` | a report as rows and blocks, from which terminal, page and Markdown are written |
| `words.py` | the sentences in these rows |

`report.schema.json` is the schema. `make settings` writes it again.
"""
