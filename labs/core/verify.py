"""Does a bundle still say what its arrays say? Hashes first, then every check judged again, then the claims on top.

What can't be judged again is counted and said: a witness needs the lab's own code, and arrays that the config's `save`
left out are not there. What `lab report` adds later (LATER) is let be. Whoever writes all of a bundle anew can make it
agree with itself; what this finds is damage, a report that its arrays do not bear out, and a file that no honest run
would have written.
"""

import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labs.core.bundle import is_bundle, read_report
from labs.core.reports.summary import Record, count
from labs.core.storage.manifest import MANIFEST, Entry, complaint, files, is_plain, read_manifest
from labs.core.storage.rejudge import lab_problems
from labs.core.storage.stored import DamagedBundle, kind_of, shown

LATER = {"report.html", "junit.xml"}  # `lab report` makes them from the rest when the run is long over


@dataclass(frozen=True)
class Verified:
    """Every problem as a sentence that names the file or the check, and one line on what was done."""

    problems: tuple[str, ...]
    summary: str


def verify(bundle: Path) -> Verified:
    """Check a bundle's files against its manifest and its report against its arrays.

    Raises RequestError when `bundle` is no bundle at all; everything else that is wrong is a problem.
    """
    is_bundle(bundle)
    done: Counter[str] = Counter()
    problems = _damage(bundle, done)
    try:
        report = read_report(bundle)
    except DamagedBundle as error:
        problems.append(str(error))
    else:
        problems += _run_problems(report)
        problems += _unreported(bundle, report)
        for lab in report["labs"]:
            problems += lab_problems(bundle, lab, done)
    return Verified(tuple(dict.fromkeys(problems)), _summary(done))


def _summary(done: Counter[str]) -> str:
    """What was done, and what could not be."""
    proofs, unsaved = done["witness"], done["not saved"]
    skipped = [f"{count(proofs, 'witness check')} (that takes the lab's code)"] if proofs else []
    skipped += [f"{count(unsaved, 'check')} (without saved arrays)"] if unsaved else []
    again = f"; not again: {', '.join(skipped)}" if skipped else ""
    return f"{count(done['files'], 'file')} hashed, {count(done['judged'], 'check')} judged again{again}"


def damage(bundle: Path) -> tuple[str, ...]:
    """What of a bundle's files is not as its manifest says, a sentence each; nothing is judged again.

    Raises RequestError when `bundle` is no bundle at all.
    """
    is_bundle(bundle)
    return tuple(_damage(bundle, Counter()))


def _damage(bundle: Path, done: Counter[str]) -> list[str]:
    try:
        return list(_file_problems(bundle, done))
    except OSError as error:
        return [f"{error.filename}: can't be listed: {error.strerror}"]


def _file_problems(bundle: Path, done: Counter[str]) -> Iterator[str]:
    found = dict(files(bundle))
    for name, mode in found.items():
        if not is_plain(mode):
            yield f"{shown(name)}: {kind_of(mode)}; a bundle holds plain files only"
    try:
        entries = read_manifest(bundle)
    except DamagedBundle as error:
        yield str(error)
        return
    for entry in entries:
        if is_plain(found.get(entry.path, stat.S_IFREG)):  # what is not was said above
            done["files"] += entry.path in found
            yield from filter(None, [_complaint(bundle, entry)])
    for name in sorted(found.keys() - {entry.path for entry in entries} - LATER):
        yield f"{shown(name)}: not listed in {MANIFEST}"


def _complaint(bundle: Path, entry: Entry) -> str:
    try:
        return complaint(bundle, entry)
    except OSError as error:
        return f"{shown(entry.path)}: can't be read: {error.strerror}"


def _unreported(bundle: Path, report: Record) -> Iterator[str]:
    """The folders of configs and of known faults that the report says nothing of."""
    told = {lab["name"]: {control["name"] for control in lab["controls"]} for lab in report["labs"]}
    parts = {tuple(name.split("/")[:3]) for name in dict(files(bundle)) if "/" in name}
    for name in sorted({part[0] for part in parts} - told.keys()):
        yield f"report.json: says nothing of {shown(name)}, though its folder is there"
    for name, fault in sorted({(p[0], p[2]) for p in parts if len(p) == 3 and p[1] == "controls"}):  # noqa: PLR2004
        if name in told and fault not in told[name]:
            yield f"report.json: says nothing of the known fault {shown(fault)} of {name}, though its folder is there"


def _run_problems(report: Record) -> Iterator[str]:
    run = report["run"]
    if run["status"] == "passed" and any(lab["status"] != "passed" for lab in report["labs"]):
        yield "report.json: the run is said to have passed, and a lab did not"
    if (run["status"] == "passed") != (run["exit_code"] == 0):
        yield f"report.json: status {run['status']!r} does not go with exit code {run['exit_code']!r}"
    for name, times in Counter(lab["name"] for lab in report["labs"]).items():
        if times > 1:
            yield f"report.json: {name} is reported {times} times"
