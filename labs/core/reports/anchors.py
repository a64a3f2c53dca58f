"""Where an item is in report.html: the ids that the page gives out, and that JUnit and annotations point to."""

import hashlib
import re

from labs.core import items
from labs.core.reports.summary import Record

PAGE = "report.html"
LONGEST = 160  # characters of an id; a longer one ends in a hash
_ODD = re.compile(r"[^A-Za-z0-9_./:-]")


def label(check: Record) -> str:
    """A check's name where an item can have several."""
    return items.label(str(check["name"]), str(check["kind"]))


def anchor(lab: Record, name: str) -> str:
    """The id of a check's `label`, or of a config when `name` is empty: plain ASCII, in a URL as in the page.

    What is not plain becomes `~` and its code point, so two names never share an id.
    """
    return _plain(f"{lab['name']}/{name}" if name else str(lab["name"]))


def control_anchor(lab: Record, name: str) -> str:
    """The id of a known fault; no item can have it, for item names hold no colon before their kind."""
    return _plain(f"{lab['name']}:{name}")


def node_anchor(lab: Record, name: str) -> str:
    """The id of a node of the walk."""
    return _plain(f"{lab['name']}::{name}")


def _plain(text: str) -> str:
    plain = _ODD.sub(lambda found: f"~{ord(found[0]):x}~", text)
    if len(plain) <= LONGEST:
        return plain
    return f"{plain[: LONGEST - 17]}~{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
