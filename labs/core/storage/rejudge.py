"""One lab of a bundle judged again from its stored arrays, and what its own records do not bear out."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from labs.core.items import REPLACING, Tolerance, promised
from labs.core.judge import Check, judge
from labs.core.lab import Array, Rule
from labs.core.reports.json_text import writable
from labs.core.reports.summary import Record, count, is_sound
from labs.core.storage.folder import Folder
from labs.core.storage.stored import DamagedBundle, plain_file, shown

COMPARED = (
    "status", "shape", "dtype", "count", "max_abs", "mean_abs", "p99_abs", "max_rel", "max_ulp", "worst",
    "out_of_tolerance", "headroom", "blunt_share", "reference_sha256", "observed_sha256",
)  # fmt: skip
FACT = 64  # elements: a fact is a number
LAST_BITS = 1e-9  # relative: sums and logarithms may round otherwise on another machine
_SAVE = re.compile(rb"^save: *(all|failing|none)\b", re.MULTILINE)


def lab_problems(bundle: Path, lab: Record, done: Counter[str]) -> Iterator[str]:
    """Every problem of one lab, as a sentence; counts in `done` what was judged, what was not and why."""
    name = lab["name"]
    sides = Folder(bundle, f"{name}/reference"), Folder(bundle, f"{name}/observed")
    try:
        everything = _saved(bundle, name) == "all"
        for record in lab["checks"]:
            for problem in _check_problems(record, *sides, everything, done):
                yield f"{name}: {shown(record['name'])} ({shown(record['kind'])}): {problem}"
        for problem in (*_unread(lab, *sides), *_other_facts(lab, sides[1])):
            yield f"{name}: {problem}"
    except DamagedBundle as error:
        yield str(error)
    for problem in _claims(lab):
        yield f"{name}: {problem}"


def _saved(bundle: Path, name: str) -> str:
    """What the config says of arrays: all, failing or none; `all` (which asks most) when it does not say."""
    try:
        found = _SAVE.search(plain_file(bundle, f"{name}/config.yaml").read_bytes())
    except OSError:
        return "all"
    return found[1].decode() if found else "all"


def _check_problems(
    record: Record, reference: Folder, observed: Folder, everything: bool, done: Counter[str]
) -> Iterator[str]:
    if record["status"] == "passed" and not (record["out_of_tolerance"] == 0 and record["count"]):
        yield "passed, though by its own numbers it did not"
    if record["kind"] == "witness":
        done["witness"] += 1
        return
    try:
        rule = _rule(record)
        if not everything and not _stored(rule, reference, observed):
            done["not saved"] += 1
            return
        again = judge(rule, reference, observed, _tolerance(record))
    except (DamagedBundle, ValueError, TypeError, OverflowError) as error:
        yield f"can't be judged again: {error}"
        return
    done["judged"] += 1
    yield from _differences(record, again)


def _rule(record: Record) -> Rule:
    kind = record["kind"]
    if kind not in ("close", "zero", "exact", "identical", "within"):
        raise ValueError(f"kind {kind!r} is unknown")
    return Rule(kind, record["name"], record["other"])


def _stored(rule: Rule, reference: Mapping[str, Array], observed: Mapping[str, Array]) -> bool:
    against = observed if rule.kind == "identical" else reference
    return rule.item in observed and (rule.kind == "zero" or (rule.other or rule.item) in against)


def _tolerance(record: Record) -> Tolerance:
    stated, usual = record["tolerance"], Tolerance()
    if record["kind"] != "close" or stated is None:
        return usual
    atol, rtol, reason = float(stated["atol"]), float(stated["rtol"]), stated["reason"]
    if not (0 <= atol < math.inf and 0 <= rtol < math.inf):
        raise ValueError(f"tolerance atol {atol}, rtol {rtol}, expected finite and not negative")
    if (atol > usual.atol or rtol > usual.rtol) and not reason:
        raise ValueError(f"tolerance atol {atol}, rtol {rtol} is looser than the default and gives no reason")
    return Tolerance(atol, rtol, reason)


def _differences(record: Record, again: Check) -> Iterator[str]:
    fresh = again.to_json()
    if record["status"] != fresh["status"]:
        because = f": {fresh['message']}" if fresh["message"] else ""
        yield f"recorded as {shown(record['status'])}, judged again it is {fresh['status']}{because}"
        return
    for field in COMPARED:
        if not _same(record[field], fresh[field]):
            yield f"{field} is recorded as {record[field]!r}, from the stored arrays it is {fresh[field]!r}"


def _same(stated: object, found: object) -> bool:
    if isinstance(found, dict) and isinstance(stated, dict):
        return stated.keys() == found.keys() and all(_same(stated[key], found[key]) for key in found)
    if isinstance(found, list) and isinstance(stated, list):
        return len(stated) == len(found) and all(map(_same, stated, found))
    if isinstance(found, float) and isinstance(stated, float | int):
        return math.isclose(stated, found, rel_tol=LAST_BITS)
    return bool(stated == found)


def _unread(lab: Record, reference: Folder, observed: Folder) -> Iterator[str]:
    """Stored arrays that no check reads: the trace that a removed check leaves."""
    if any(option.startswith(("--only", "--precision")) for option in lab["narrowed"]):
        return
    checks = [record for record in lab["checks"] if record["kind"] != "witness"]
    names = {record["name"] for record in checks}
    own = {record["name"] for record in checks if record["kind"] in REPLACING}
    others = {
        kind: {record["other"] for record in checks if record["kind"] == kind} for kind in ("identical", "within")
    }
    for side, folder, read in (
        ("reference", reference, own | others["within"]),
        ("observed", observed, names | others["identical"] | {fact["name"] for fact in lab.get("facts", ())}),
    ):
        for item in folder:
            if item not in read:
                yield f"{side}/{shown(item)}.npy: stored, and no check in report.json reads it"


def _other_facts(lab: Record, observed: Folder) -> Iterator[str]:
    """Facts that the report states otherwise than the torch side did, where that was kept."""
    for fact in lab.get("facts", ()):
        stored = observed.get(fact["name"])
        if stored is not None and (stored.size > FACT or writable(stored.tolist()) != fact.get("value")):
            yield f"fact {shown(fact['name'])}: its array does not say what the report states"


def _claims(lab: Record) -> Iterator[str]:
    """What the lab's own records do not bear out."""
    doubled = [key for key, times in Counter((r["name"], r["kind"]) for r in lab["checks"]).items() if times > 1]
    for name, kind in doubled:
        yield f"{shown(name)} ({shown(kind)}): reported twice"
    owed = [r for r in lab["checks"] if r["kind"] != "witness" and not r["message"].startswith("extra:")]
    rules = [Rule(r["kind"], r["name"], r["other"]) for r in owed]
    if lab["promised"] != len(promised(rules)):
        yield f"{count(lab['promised'], 'item')} said to be promised, the checks read {len(promised(rules))}"
    for control in lab["controls"]:
        if control["status"] == "caught" and (control.get("missed") or control.get("leaked")):
            yield f"control {shown(control['name'])}: caught, though it lists what was missed or leaked"
    if lab["status"] == "passed" and not _bears_out(lab):
        yield "said to have passed, which its checks, controls, wiring or failures do not bear out"


def _bears_out(lab: Record) -> bool:
    return (
        bool(lab["checks"])
        and all(record["status"] == "passed" for record in lab["checks"])
        and all(map(is_sound, lab["controls"]))
        and not lab["failures"]
        and not lab["wiring"]["problems"]
    )
