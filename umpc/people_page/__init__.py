"""A page for people with a browser, which answers a study of people (docs/people_page.md).

| file | what it is |
|---|---|
| `contents.py` | the page's content: the study's form, and texts in languages |
| `server.py` | the page over HTTPS, and the relay of sealed messages to the three doors |

`page.html`, `page.css` and `page.js` are what a browser runs, and `texts.json` has all texts.
"""
