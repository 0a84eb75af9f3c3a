"""Enrolment: a site gets its certificate by an invitation, and its key never leaves it.

    authority$ umpc enrol invite    an invitation: the authority's certificate, a one-time code
    site$      umpc enrol join      a key that stays, and a request that proves the code
    authority$ umpc enrol approve   compares the request's fingerprint, and admits the site
    site$      umpc enrol finish    checks the admission, and writes the identity

With a listening authority (`umpc enrol listen`), `join` sends the request itself, waits for the
decision, and finishes.

| file | what it is |
|---|---|
| `texts.py` | the three texts that travel: invitation, request, admission |
| `register.py` | the authority's record of invitations, requests and members |
| `authority_side.py` | invite, receive a request, approve it |
| `site_side.py` | join, ask a listening authority, and finish |
| `listener.py` | the listening authority |
| `sign_in.py` | a coordinator's certificate for hours, against its institution's ID token |
"""
