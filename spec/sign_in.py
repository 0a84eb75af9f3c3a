"""The person behind a coordinator's certificate for hours, and the studies that it may ask.

The certificate's alternative names are two DNS names, as in every certificate, and one URI. A
program that does not know the URI refuses the certificate. It must not take it for one that may
ask everything.
"""

from urllib.parse import parse_qsl, urlencode

from spec.refused import require

BEGIN = "umpc:signed-in?"


def uri(person: str, institution: str, studies: list[bytes]) -> str:
    """The URI. Args: person: `sub` of the institution's token. studies: their hashes."""
    fields = [("person", person), ("institution", institution)]
    return BEGIN + urlencode([*fields, *(("hash", each.hex()) for each in studies)])


def propose(uri: str, study: bytes, coordinator: str) -> list[str]:
    """A node's check of a proposal. Args: study: its hash. Returns: person and institution."""
    fields = parse_qsl(uri.removeprefix(BEGIN), keep_blank_values=True, strict_parsing=True)
    (_, person), (_, institution), *studies = fields
    require(("hash", study.hex()) in studies, "a certificate lists the study", coordinator)
    return [person, institution]
