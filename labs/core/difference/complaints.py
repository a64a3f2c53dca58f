"""What else two reports of one config differ in: known faults, stages, wiring, verdicts, facts.

A fault that is no longer caught, or no longer tried, is a regression of the checks themselves.
"""

from collections.abc import Iterator

from labs.core.difference.classes import Change, Fact
from labs.core.reports.summary import Record, is_sound


def control_changes(config: str, old: Record, new: Record) -> Iterator[Change]:
    """Known faults that say something against the checks of one run or both, or that one did not try."""
    before, after = ({c["name"]: c for c in lab["controls"]} for lab in (old, new))
    for name in before | after:
        status = tuple(side[name]["status"] if name in side else "" for side in (before, after))
        made = {"config": config, "name": name, "kind": "control", "status": status}
        if name not in after and "--no-controls" in new["narrowed"]:
            yield Change(**made, change="not-comparable", why="B was run with --no-controls")
        elif name not in after:
            yield Change(**made, change="removed", why="B does not try this fault any more")
        elif name not in before:
            yield Change(**made, change="added", why=before_added(old))
        elif not (is_sound(before[name]) and is_sound(after[name])):
            change = _change(is_sound(before[name]), is_sound(after[name]))
            yield Change(**made, change=change, why=after[name].get("message") or after[name]["why"])


def before_added(old: Record) -> str:
    """Why A does not have something that B has."""
    return f"A was narrowed by {' '.join(old['narrowed'])}" if old["narrowed"] else ""


def _change(before: bool, after: bool) -> str:
    if after:
        return "fixed"
    return "regression" if before else "still-failing"


def caught_in_both(old: Record, new: Record) -> int:
    """How many known faults both runs caught."""
    return len(
        set.intersection(*({c["name"] for c in lab["controls"] if c["status"] == "caught"} for lab in (old, new)))
    )


def complaint_changes(config: str, old: Record, new: Record) -> Iterator[Change]:
    """Sentences about stages and wiring that one of the runs has and the other has not, or both have."""
    for kind, key in (("failure", "failures"), ("wiring", "problems")):
        sides = [list(lab[key] if kind == "failure" else lab["wiring"][key]) for lab in (old, new)]
        for sentence in dict.fromkeys([*sides[1], *sides[0]]):
            name = sentence.splitlines()[0] if sentence else kind
            status = tuple("failed" if sentence in side else "passed" for side in sides)
            change = {"passed": "regression"}.get(status[0], "still-failing" if status[1] == "failed" else "fixed")
            yield Change(config, name, kind, change, (status[0], status[1]))


def verdict_change(config: str, old: Record, new: Record, found: list[Change]) -> Iterator[Change]:
    """A config that no longer passes though nothing in its report says why: the verdict alone is a regression then."""
    if old["status"] == "passed" != new["status"] and all(c.change != "regression" for c in found):
        yield Change(config, config, "verdict", "regression", (old["status"], new["status"]), why="no check says why")


def fact_changes(config: str, old: Record, new: Record) -> Iterator[Fact]:
    """Facts of the torch side that differ. They are not judged."""
    before, after = ({f["name"]: f for f in lab.get("facts", ())} for lab in (old, new))
    for name in before | after:
        values = [str(side[name].get("value"))[:1000] if name in side else "absent" for side in (before, after)]
        if values[0] != values[1]:
            yield Fact(config, name, values[0], values[1], (after.get(name) or before[name])["what"])
