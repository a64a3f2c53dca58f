"""A bundle as a whole: all that it takes to judge a run again, and how a report in it is read.

Writing is `open_draft` and `save_array`, reading `read_report`, `read_manifest` and `Folder`.
"""

import os
import re
from pathlib import Path
from typing import Any

from labs.core.errors import RequestError
from labs.core.storage import report_schema
from labs.core.storage.draft import LATEST, Draft, open_draft
from labs.core.storage.folder import Folder, save_array
from labs.core.storage.manifest import MANIFEST, read_manifest
from labs.core.storage.report_schema import require
from labs.core.storage.stored import DamagedBundle, read_json

__all__ = [
    "LATEST",
    "MANIFEST",
    "REPORT",
    "SCHEMA",
    "DamagedBundle",
    "Draft",
    "Folder",
    "open_draft",
    "read_manifest",
    "read_report",
    "save_array",
]

REPORT = "report.json"
SCHEMA = report_schema.NAME

_CONFIG_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")  # names a folder of the bundle, so no "/" and no ".."


def is_bundle(bundle: Path) -> None:
    """Raise RequestError unless `bundle` is a folder that looks like a bundle."""
    if not os.path.lexists(bundle):
        raise RequestError(f"{bundle}: there is no such folder")
    if not bundle.is_dir():
        raise RequestError(f"{bundle}: not a folder, expected a bundle")
    if not any(os.path.lexists(bundle / name) for name in (REPORT, MANIFEST)):
        inside = f"; did you mean {bundle / LATEST}?" if os.path.lexists(bundle / LATEST / REPORT) else ""
        raise RequestError(f"{bundle}: not a bundle: it has no {REPORT}{inside}")


def read_report(bundle: Path) -> dict[str, Any]:
    """Read the contents of a bundle's report.json: every key there, with a value of its type.

    Raises RequestError when there is no bundle, DamagedBundle when the report is missing, malformed or of another
    schema.
    """
    is_bundle(bundle)
    report, _ = read_json(bundle, REPORT)
    if report.get("schema") != SCHEMA:
        raise DamagedBundle(f"{REPORT}: schema is {report.get('schema')!r}, expected {SCHEMA!r}")
    require(report, report_schema.REPORT, REPORT)
    for lab in report["labs"]:
        if not _CONFIG_NAME.fullmatch(lab["name"]):
            raise DamagedBundle(f"{REPORT}: {lab['name']!r} can't be the name of a config's folder")
    return report
