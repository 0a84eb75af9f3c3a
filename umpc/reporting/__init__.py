"""A report for people and for programs: a page, a picture, Markdown, and JSON with a schema.

| file | what it is |
|---|---|
| `page.py` | a report as one HTML file |
| `page_style.py` | the frame and the style of a page: dark and light, screen and paper |
| `picture.py` | the estimate with its intervals, as an SVG picture |
| `markdown.py` | a report as Markdown |
| `json_document.py` | a report as a JSON document of a versioned schema, with its inference |
| `printable.py` | text from outside as one line without characters that steer a terminal |
| `rows.py` | a report as rows and blocks, from which terminal, page and Markdown are written |
| `words.py` | the sentences in these rows |

`report.schema.json` is the schema. `make settings` writes it again.
"""
