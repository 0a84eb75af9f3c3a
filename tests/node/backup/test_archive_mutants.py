"""umpc/node/backup: an archive that somebody altered is refused, and nothing is restored."""

from __future__ import annotations

import io
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

from tests.support.backup_sites import ALL, refused
from tests.support.ledgers import A


def mutants(content: bytes) -> dict[str, bytes]:
    """Archives that differ from a true one."""
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        files = {each.name: tar.extractfile(each).read() for each in tar.getmembers()}
    ledger = bytearray(files["ledger.sqlite"])
    ledger[-1] ^= 1
    manifest = files["manifest.json"]
    found = {
        "a ledger": {**files, "ledger.sqlite": bytes(ledger)},
        "a row": {**files, "manifest.json": manifest.replace(b'"row": 3', b'"row": 2')},
        "a seal": {**files, "manifest.seal": b"0" * 64},
        "no seal": {name: each for name, each in files.items() if name != "manifest.seal"},
        "no trail": {name: each for name, each in files.items() if name != "ledger.audit"},
        "one more": {**files, "crl.pem": b"x"},
        "outside": {**files, "../outside": b"x"},
    }
    packed = {name: pack(each) for name, each in found.items()}
    linked = io.BytesIO(content)
    with tarfile.open(fileobj=linked, mode="a") as tar:
        link = tarfile.TarInfo("crl.pem")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    cut = {f"cut at {n}": content[:n] for n in (0, 100, 700, len(content) // 2)}
    return {**packed, "link": linked.getvalue(), **cut}


def pack(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_a_mutant_archive_is_refused(site, tmp_path):
    site.charge(A)
    content = site.back_up().read_bytes()
    site.lose(".key")
    for name, mutant in mutants(content).items():
        assert mutant != content, name
        path = tmp_path / "mutant.tar"
        path.write_bytes(mutant)
        refused(path, site, "Nothing was restored", ALL)
    assert not (tmp_path / "outside").exists()


def test_a_ledger_that_was_edited_with_its_manifest_is_refused(site, tmp_path):
    """An archive with keys can be sealed again by its holder, and the chain finds an edited row."""
    import hashlib
    import json

    from umpc.node.backup.archive import seal_of

    site.charge(A)
    content = site.back_up().read_bytes()
    key = Path(f"{site.ledger}.key").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        files = {each.name: tar.extractfile(each).read() for each in tar.getmembers()}
    draft = tmp_path / "draft.sqlite"
    draft.write_bytes(files["ledger.sqlite"])
    with closing(sqlite3.connect(draft)) as db, db:
        db.execute("UPDATE ledger SET epsilon = '1/10' WHERE kind = 'charge'")
    files["ledger.sqlite"] = draft.read_bytes()
    facts = json.loads(files["manifest.json"])
    facts["files"]["ledger.sqlite"] = hashlib.sha256(files["ledger.sqlite"]).hexdigest()
    files["manifest.json"] = json.dumps(facts, sort_keys=True).encode()
    files["manifest.seal"] = seal_of(key, files["manifest.json"])
    mutant = tmp_path / "mutant.tar"
    mutant.write_bytes(pack(files))
    site.lose(".key")
    refused(mutant, site, "its ledger does not verify", ALL)
