"""The example of a node's configuration with every key, which `umpc node template` prints."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence

from umpc.errors import ConfigError
from umpc.node.config import NAME, NAME_EXPECTED
from umpc.protocols.registry import possible_values
from umpc.transport.addresses import HubAddress

WIDTH = 100
BESIDE = "#                                  # "
"""The beginning of a line that goes on with the comment beside a key."""


def template(name: str) -> str:
    """Return a commented example for a node of this name.

    `config.load_node_config` accepts it as soon as its paths exist. Raises: ConfigError.
    """
    if not re.fullmatch(NAME, name):
        raise ConfigError(
            f"a node's name ({NAME_EXPECTED}) was expected, and {name!r} came. Take another"
        )
    text = TEMPLATE.replace("@name@", name)
    for key in ("noise", "protocol"):
        text = text.replace(f"@{key}@", _listed(possible_values(key)))
    return text


def _listed(values: Sequence[str]) -> str:
    """Return the values as lines of a comment beside a key."""
    return textwrap.fill(
        ", ".join(f'"{value}"' for value in values),
        width=WIDTH,
        initial_indent=BESIDE,
        subsequent_indent=BESIDE,
        break_on_hyphens=False,
    )


def configured(
    name: str, *, table: str, epsilon: str, place: str | HubAddress, is_open: bool = False
) -> str:
    """Return the example with a site's own values in the keys that have no default.

    Args: table: a path, relative to the file's folder or absolute. epsilon: exact text. place:
        where the node listens, or the hub that it dials. is_open: no person is asked before a
        study, for trials.
    """
    changed = template(name)
    values = {
        'path = "data.csv"': f"path = {_quoted(table)}",
        "epsilon = 5 ": f"epsilon = {_number(epsilon)} ",
    }
    if isinstance(place, HubAddress):
        own = f"hub = {{name = {_quoted(place.name)}, address = {_quoted(place.address)}}}"
        values |= {LISTEN: f"# {LISTEN}", HUB: own}
    else:
        values[LISTEN] = f"listen = {_quoted(place)}"
    if is_open:
        values[APPROVAL] = f"# {APPROVAL}"
    for example, own in values.items():
        changed = changed.replace(example, own, 1)
    return changed


def _number(text: str) -> str:
    """Return an exact number as TOML writes it, a fraction in quotes."""
    is_plain = re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]+)?", text)
    return text if is_plain else _quoted(text)


def _quoted(text: str) -> str:
    """Return a text as TOML writes it. JSON's escapes are among TOML's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


APPROVAL = "approval = true  "
LISTEN = 'listen = "0.0.0.0:7100"'
HUB = '# hub = {name = "relay", address = "hub.example.org:7443"}'
TEMPLATE = """\
# The configuration of one umpc node. Paths are relative to this file's folder.

name = "@name@"                    # as in the study's list of participants and in cert.pem
listen = "0.0.0.0:7100"            # host:port where coordinator and other nodes reach this one
# hub = {name = "relay", address = "hub.example.org:7443"}  # instead of listen: dial this hub, and
#                                  # accept no connection from outside
identity = "site"                  # the folder of `umpc ca request`: ca.pem, cert.pem, key.pem
# plugins = ["my-protocol"]        # protocols of other installed packages that may run here;
#                                  # default: none
# cores = 2                        # the most cores of this machine that compute; default: all
# compute = "dask://scheduler:8786"  # this site's own Dask cluster computes in place of this
#                                  # machine (docs/cluster.md); it needs the extra cluster
# compute_tls = "cluster"          # the folder with the cluster's ca.pem, cert.pem and key.pem
# ledger = "@name@-ledger.sqlite"  # what was spent; keep it as long as the data, and back it up

[data]
path = "data.csv"                  # .csv or .tsv, also with .gz, or .parquet; the column names
#                                  # are in the first line; "visits/*.parquet" is one table of
#                                  # many files (docs/operations.md)
#                                  # or a query in a database in place of path: the keys sql, url
#                                  # and password_file (docs/sql.md); except for a DuckDB file,
#                                  # it needs the extra sql
#                                  # or objects of a store with the S3 API: the keys url, endpoint,
#                                  # region, credentials_file and object_megabytes in place of path
#                                  # (docs/s3.md); it needs the extra s3
#                                  # or no table, but messages of people: the key people, and the
#                                  # section [people] (docs/operations.md); a table with linked
#                                  # rows has a section [linked] (docs/linked.md)
# delimiter = ";"                  # default: the one of , ; tab | that splits the first line most
# missing = ["", "NA"]             # a row with one of these in a field of the study is left out;
#                                  # default: "", "nan", "NaN" and "NA". Other values that do not
#                                  # fit count as a bound, and this node's log says how many
# words = {WAHR = "true", "<5" = "2.5"}     # what words of the table are in studies
# columns = {crp = "CRP_mg_l"}     # fields of studies, and the table's own names of them
# encoding = "latin-1"             # of a CSV file; default: "utf-8"
# decimal = ","                    # the decimal mark of its numbers; default: "."
# thousands = "."                  # their thousands separator; default: none, so that 1.234,5 is
#                                  # no number
# name = "data"                    # the data set's name in the ledger; default: the file's name

# A site with several tables has sections [[datasets]], [datasets.budget] and [datasets.policy] in
# place of [data], [budget], [policy] and ledger: docs/operations.md.

[budget]
epsilon = 5                        # for all studies together; exact: 5, 0.5 or "1/3"
# delta = "1e-9"                   # for all studies together, exact; noise that is drawn under
#                                  # shares costs a little of it
# composition = "zcdp"             # how the costs of studies add up: "basic" (default: epsilon with
#                                  # epsilon), "advanced" or "zcdp", which leave room for more
#                                  # studies; decide before the first study
# composition_delta = "1e-9"       # delta that "advanced" or "zcdp" costs, beside delta above
# anchor = "@name@-ledger.anchor"  # holds the place of the ledger's last row; best on another
#                                  # disk, see `umpc budget`
# hold_hours = 24                  # how long a run may reserve epsilon, and then how long its
#                                  # finished attempt waits to be released

[prepare]                          # for `umpc study prepare`: its material is encrypted on the
#                                  # ledger's disk
# most = 4                         # studies that may wait for their run at once, 0 for none; their
#                                  # epsilon is reserved
# hours = 24                       # how long one waits; then its epsilon is free again

[notify]
# command = ["/bin/true"]          # a program of yours that runs when a study begins to wait for a
#                                  # person: it gets one JSON object on its standard input

[policy]                           # read at every proposal, without a restart; a missing key
#                                  # allows anything, except where a default is named here
# coordinators = ["coordinator"]   # names in the certificates of those who may ask
# statistics = ["kendall_tau"]     # of the library (`umpc kernels`), with default parameters, over
#                                  # any fields
# kernels = ["0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
#                                  # hashes, from `umpc kernels explain`; together with statistics,
#                                  # a study is allowed if either allows it
# fields = ["age", "balance"]      # names of fields that may be used
# public_labels = ["treatment"]    # fields whose value of each record everybody may know; then a
#                                  # study may ask for the number of records of each class;
#                                  # default: none
# public_filters = ["age"]         # fields by which a study may choose records (where); then it is
#                                  # told how many of them this site has; default: none
# person = "patient_id"            # the column that tells people apart: then a study must protect
#                                  # all records of one person together; default: one record
# max_epsilon = 1                  # of one study; exact, as under [budget]
# max_delta = "1e-9"               # of one study; exact, as under [budget]
# min_records = 100                # complete records in this node's table, for the study's fields
# min_nodes = 3                    # of a study
# min_colluding = 1                # nodes that the noise must withstand: the smallest
#                                  # max_colluding of a study; default: all nodes but one. With
#                                  # fewer, max_colluding + 1 nodes of a grid check for all
# noise = ["distributed"]          # how it may be drawn:
@noise@
# coins = ["transfers", "none"]    # what a committee's noise is made of: "transfers" between
#                                  # the nodes, "dealt" by the dealer, or "none"
# backend = ["shared"]             # how edges of several owners may be evaluated: "shared",
#                                  # "garbled", "triples", "grid", "none"
# protocol = ["u-mpc"]             # what may leave:
@protocol@
# preprocessing = ["none"]         # who may prepare it: "dealer", or "none"
# adversary = ["lying_nodes"]      # the grades of promise that a study may have: "honest", or
#                                  # "lying_nodes", where other nodes may send anything
# dealers = ["dealer"]             # names in the certificates of the dealers that may take part
# shufflers = ["shuffler-1"]       # the same for shufflers; all of a study must be listed
# trusted_curator = true           # a protocol may show raw records to the coordinator;
#                                  # default: never
approval = true                    # a person must accept each study: `umpc approve --help`;
#                                  # without this line no person is asked
"""
