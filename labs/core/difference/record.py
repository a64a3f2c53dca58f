"""A difference as a JSON document (schema "framework-lab/diff/1"); every form of it is made from this one."""

from typing import Any

from labs.core.difference.classes import CLASSES, FAILS, Change, Difference, counts, exit_code
from labs.core.reports.json_text import writable

SCHEMA = "framework-lab/diff/1"
STATUS = {0: "passed", 1: "failed", 5: "nothing compared"}


def record(difference: Difference, fail_on: str) -> dict[str, Any]:
    """The whole difference and its verdict. Numbers that are not finite are the strings nan, inf, -inf."""
    code = exit_code(difference, fail_on)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "run": {
            "status": STATUS[code],
            "exit_code": code,
            "fail_on": fail_on,
            "fails": [name for name in CLASSES if name in FAILS[fail_on]],
        },
        "a": dict(difference.a),
        "b": dict(difference.b),
        "environment": [vars(setting) for setting in difference.environment],
        "cause": difference.cause,
        "counts": counts(difference.changes),
        "configs": [
            {**vars(pair), "counts": counts(c for c in difference.changes if c.config == pair.name)}
            for pair in difference.configs
        ],
        "changes": [_change(change) for change in difference.changes],
        "facts": [vars(fact) for fact in difference.facts],
    }
    plain: dict[str, Any] = writable(found)
    return plain


def _change(change: Change) -> dict[str, Any]:
    """A change, in which `class` is its class."""
    fields = dict(vars(change))
    return {"config": fields.pop("config"), "name": fields.pop("name"), "class": fields.pop("change"), **fields}
