"""The outline of report.json, so that whatever reads a stranger's report finds every key with a value of its type."""

from types import UnionType
from typing import NamedTuple, TypeAlias, cast

from labs.core.storage.stored import DamagedBundle

NAME = "framework-lab/report/1"


class Maybe(NamedTuple):
    """What is None or fits `spec`."""

    spec: "Spec"


class Some(NamedTuple):
    """A list whose every element fits `spec`."""

    spec: "Spec"


class Later(NamedTuple):
    """A key that reports of earlier versions lack; where it is, its value fits `spec`."""

    spec: "Spec"


class Number(NamedTuple):
    """A JSON number, or one of the words for what JSON has no number for."""

    words: tuple[str, ...] = ("nan", "inf", "-inf")


Spec: TypeAlias = type | UnionType | Maybe | Some | Later | Number | dict[str, "Spec"]

_NUMBER = Number()
_TOLERANCE: Spec = {"atol": _NUMBER, "rtol": _NUMBER, "reason": str}
_CHECK: Spec = {
    **dict.fromkeys(("name", "kind", "status", "other", "dtype", "message"), str),
    **dict.fromkeys(("reference_sha256", "observed_sha256"), str),
    **dict.fromkeys(
        ("max_abs", "mean_abs", "p99_abs", "max_rel", "max_ulp", "headroom", "blunt_share"), Maybe(_NUMBER)
    ),
    "shape": Some(int),
    "count": int,
    "worst": Maybe({"index": Some(int), "reference": _NUMBER, "observed": _NUMBER}),
    "tolerance": Maybe(_TOLERANCE),
    "out_of_tolerance": int,
    "arbiter": Maybe({"reference_ulp": _NUMBER, "observed_ulp": _NUMBER}),
    "diagnosis": Maybe(str),
    "blame": Later(Maybe({"side": str, "because": str})),
}
_CONTROL: Spec = {
    **dict.fromkeys(("name", "why", "status"), str),
    **dict.fromkeys(("must", "may", "failed"), Some(str)),
    "separation": {"good": Maybe(_NUMBER), "fault": Maybe(_NUMBER)},
    "message": Later(str),
}
_NODE: Spec = {
    **dict.fromkeys(("name", "value", "gradient", "forward", "backward"), str),
    "read_by": Some(str),
}
_CHANGE: Spec = {
    **dict.fromkeys(("config", "name", "kind", "class", "why"), str),
    "status": Some(str),
    "headroom": Some(Maybe(_NUMBER)),
    "ulp": Maybe(_NUMBER),
}
_BASELINE: Spec = {
    "run": {"exit_code": int, "fails": Some(str)},
    "a": {"id": str},
    "cause": str,
    "changes": Some(_CHANGE),
}
_SWAP: Spec = {**dict.fromkeys(("part", "source", "file", "sha256"), str), "line": int, "libraries": Some(str)}
_LAB: Spec = {
    **dict.fromkeys(("name", "lab", "title", "status"), str),
    **dict.fromkeys(("seed", "promised"), int),
    **dict.fromkeys(("narrowed", "failures"), Some(str)),
    **dict.fromkeys(("seconds", "peak_rss_bytes"), dict),
    "loosened": Some({"pattern": str, "atol": _NUMBER, "rtol": _NUMBER, "reason": str}),
    "wiring": {"spoils": int, "problems": Some(str)},
    "swaps": Later(Some(_SWAP)),
    "precision": Later(str),
    "device": Later(str),
    "unjudged": Later(Some({"name": str, "why": str})),
    "stages": Some({"name": str, "status": str, "seconds": _NUMBER}),
    "checks": Some(_CHECK),
    "controls": Some(_CONTROL),
    "facts": Later(Some({"name": str, "what": str})),
    "tables": Later(Some({"title": str, "header": Some(str), "rows": Some(Some(int | float | str))})),
    "walk": Later(Some(_NODE)),
    "trajectories": Later(Some(str)),
}
REPORT: Spec = {
    "schema": str,
    "run": {"id": str, "created": str, "command": Some(str), "status": str, "exit_code": int, "seconds": _NUMBER},
    "environment": dict,
    "labs": Some(_LAB),
    "baseline": Later(_BASELINE),
}


def require(value: object, spec: Spec, where: str) -> None:
    """Raise DamagedBundle, naming the place, unless `value` fits; keys that the outline does not know are let be."""
    match spec:
        case Maybe(inner):
            if value is not None:
                require(value, inner, where)
        case Later(inner):
            require(value, inner, where)
        case Some(inner):
            _is(value, list, where)
            for number, element in enumerate(cast("list[object]", value)):
                require(element, inner, f"{where}[{number}]")
        case Number(words):
            _is(value, int | float | str, where)
            if isinstance(value, int) and not -(2**1023) < value < 2**1023:
                raise DamagedBundle(f"{where}: an integer of {value.bit_length()} bits, expected a number")
            if isinstance(value, str) and value not in words:
                raise DamagedBundle(f"{where}: got {value[:20]!r}, expected a number, {', '.join(words)}")
        case dict():
            _is(value, dict, where)
            _require_keys(cast("dict[str, object]", value), spec, where)
        case _:
            _is(value, spec, where)


def _require_keys(found: dict[str, object], spec: dict[str, Spec], where: str) -> None:
    for key, inner in spec.items():
        if key in found:
            require(found[key], inner, f"{where}.{key}")
        elif not isinstance(inner, Later):
            raise DamagedBundle(f"{where}: {key} is missing")


def _is(value: object, kind: type | UnionType, where: str) -> None:
    if not isinstance(value, kind):
        expected = kind.__name__ if isinstance(kind, type) else str(kind)
        raise DamagedBundle(f"{where}: got {type(value).__name__}, expected {expected}")
