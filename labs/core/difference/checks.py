"""One check of two reports becomes one change: verdicts first, then bits, then distance.

A witness judges the reference and has no values of its own; its error, in units of its limit, says whether it moved.
What stays within a bound may be rounding noise, of which ULP say nothing: how far it moved is told as it is.
"""

from typing import Any

from labs.core.difference.classes import Change
from labs.core.difference.values import Distance, Values, bounded, number
from labs.core.reports.summary import Record, stated

LAST_BITS = 4.0  # ULP of the tensor's largest magnitude
WITNESS_LIMIT = 1e4  # ULP: about what 1e-12 of a magnitude is; 4 of them are last bits of a witness


def check_change(config: str, old: Record, new: Record, obstacle: str, values: Values) -> Change:
    """The class of one check that both bundles have. Raises DamagedBundle for arrays that are not the report's."""
    made: dict[str, Any] = {
        "config": config,
        "name": old["name"],
        "kind": old["kind"],
        "status": (old["status"], new["status"]),
        "headroom": (number(old["headroom"]), number(new["headroom"])),
    }
    if obstacle:
        return Change(**made, change="not-comparable", why=obstacle)
    moved = _moved(old, new)
    reshaped = [(r["dtype"], tuple(r["shape"])) for r in (old, new)]
    same_shape = reshaped[0] == reshaped[1]
    distance = _distance(old, new, moved, values) if moved and same_shape else Distance(0.0 if same_shape else None)
    made |= {"moved": moved, "ulp": distance.ulp, "at_most": distance.at_most}
    verdict = _verdict(*made["status"])
    if verdict:
        return Change(**made, change=verdict, why=new["message"] or old["message"])
    if not same_shape:
        why = " and ".join(f"{dtype} {shape}" for dtype, shape in reshaped)
        return Change(**made, change="not-comparable", why=why)
    limit = _limit_changed(old, new)
    return Change(**made, change=_bits(moved, distance), why="; ".join(t for t in (distance.why, limit) if t))


def _verdict(before: str, after: str) -> str:
    """The class that the verdicts alone decide, "" when both passed. What is not `passed` has failed."""
    match (before == "passed", after == "passed"):
        case (True, True):
            return ""
        case (True, False):
            return "regression"
        case (False, True):
            return "fixed"
        case _:
            return "still-failing"


def _bits(moved: tuple[str, ...], distance: Distance) -> str:
    if not moved:
        return "bit-identical"
    return "last-bits" if distance.ulp is not None and distance.ulp <= LAST_BITS else "drift"


def _moved(old: Record, new: Record) -> tuple[str, ...]:
    """Which sides have other bits. A digest that is not there proves nothing."""
    if old["kind"] == "witness":
        same = all(old[key] == new[key] for key in ("max_abs", "worst"))
        return () if same else ("reference",)
    sides = ["observed", "reference"] if old["kind"] != "identical" else ["observed"]
    pairs = {side: (old[f"{side}_sha256"], new[f"{side}_sha256"]) for side in sides}
    return tuple(s for s, (a, b) in pairs.items() if a != b or (s == "observed" and not a))


def _distance(old: Record, new: Record, moved: tuple[str, ...], values: Values) -> Distance:
    """The larger distance of the sides that moved."""
    if old["kind"] == "witness":
        return _witness(old, new)
    found = [_side(side, old, new, values) for side in moved]
    return max(found, key=lambda d: float("inf") if d.ulp is None else d.ulp)


def _side(side: str, old: Record, new: Record, values: Values) -> Distance:
    item = old["other"] if side == "reference" and old["kind"] == "within" else old["name"]
    hashes = (old[f"{side}_sha256"], new[f"{side}_sha256"])
    apart = values.apart(side, item, hashes) if all(hashes) else None
    if apart and old["kind"] == "within" and apart.max_abs is not None:
        return Distance(None, why=f"moved by up to {apart.max_abs:.2g}, where the bound is what counts")
    return apart or bounded(old, new)


def _witness(old: Record, new: Record) -> Distance:
    """A witness's error moved: in ULP of the magnitude that its limit is a share of."""
    errors = [number(r["max_abs"]) for r in (old, new)]
    limit = float(str(old["tolerance"]["atol"])) if old["tolerance"] else 0.0
    if errors[0] is None or errors[1] is None or not limit > 0:
        return Distance(None, why="the error of this witness moved")
    return Distance(abs(errors[1] - errors[0]) / limit * WITNESS_LIMIT, why="the error of this witness moved")


def _limit_changed(old: Record, new: Record) -> str:
    """Says that a check was held against another limit, which moves its headroom without moving a value."""
    limits = [(r["tolerance"] or {}) for r in (old, new)]
    if old["kind"] == "witness" or all(limits[0].get(key) == limits[1].get(key) for key in ("atol", "rtol")):
        return ""
    before, after = (stated(limit) if limit else "none" for limit in limits)
    return f"its limit was {before} and is {after}"
