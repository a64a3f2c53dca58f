"""A bundle opened to be compared: its report, its configs and what its files should be, none of it trusted.

All that a comparison relies on is held against the manifest or against the report: what a stranger or an accident
changed ends in a sentence that names the file. Nothing is read outside the bundle, and nothing in it can run.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.core.bundle import REPORT, DamagedBundle, Folder, is_bundle, read_manifest, read_report
from labs.core.errors import RequestError
from labs.core.loading.strict_yaml import read as read_yaml
from labs.core.reports.summary import Record
from labs.core.storage.manifest import MANIFEST, Entry, complaint, files, measure
from labs.core.storage.report_schema import Some, Spec, require
from labs.core.storage.stored import plain_file, shown

DEEP = 8  # levels of an environment
_NUMBERS = ("max_abs", "max_ulp", "headroom")
_FACT: Spec = {"name": str, "what": str}
_SWAP: Spec = {"part": str, "source": str, "sha256": str}


@dataclass(frozen=True)
class Opened:
    """A bundle (or a draft that is not published yet): labs by config name, configs as they were resolved."""

    path: Path
    report: Record
    labs: Mapping[str, Record]
    configs: Mapping[str, Record]
    inputs: Mapping[str, Mapping[str, str]]  # by config, then by name: sha256

    def arrays(self, config: str, side: str) -> Folder:
        """The stored arrays of a config; side is `observed` or `reference`."""
        return Folder(self.path, f"{config}/{side}")


def open_bundle(path: Path) -> Opened:
    """Open a published bundle. Raises RequestError, DamagedBundle for what is no whole one, both naming `path`."""
    is_bundle(path)
    try:
        report = read_report(path)
        entries = read_manifest(path)
        _whole(path, entries, {REPORT, *(f"{lab['name']}/config.yaml" for lab in report["labs"])})
        return _opened(path, report, _inputs(entries))
    except RequestError as error:
        raise DamagedBundle(f"{path}: {error}; lab verify names all that is wrong") from error
    except OSError as error:
        raise RequestError(f"{path}: {error.filename or ''} can't be read: {error.strerror}") from error


def open_draft(path: Path, report: Record) -> Opened:
    """Open the bundle that this process is writing: the report is the one in memory, the inputs are hashed now."""
    names = [f"{lab['name']}/inputs/" for lab in report["labs"]]
    entries = [measure(path, name) for name, _ in files(path) if name.startswith(tuple(names))]
    return _opened(path, report, _inputs(entries))


def _opened(path: Path, report: Record, inputs: Mapping[str, Mapping[str, str]]) -> Opened:
    _require_text(report)
    labs = {lab["name"]: lab for lab in report["labs"]}
    if len(labs) < len(report["labs"]):
        doubled = Counter(lab["name"] for lab in report["labs"]).most_common(1)[0][0]
        raise DamagedBundle(f"{REPORT}: {doubled} is reported twice")
    if _depth(report["environment"]) > DEEP:
        raise DamagedBundle(f"{REPORT}: the environment is nested more than {DEEP} levels deep")
    require(report["environment"].get("framework", {}), dict, f"{REPORT}: environment.framework")
    for lab in labs.values():
        _require_lab(lab)
    return Opened(path, report, labs, {name: _config(path, name) for name in labs}, inputs)


def _require_text(report: Record) -> None:
    """JSON can hold half a character, which no file in UTF-8 can."""
    try:
        json.dumps(report, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise DamagedBundle(f"{REPORT}: the character U+{ord(error.object[error.start]):04X} is half of one") from error


def _depth(value: object) -> int:
    """How deep mappings are nested, as far as it matters."""
    depth, level = 0, [value]
    while level and depth <= DEEP:
        level = [inner for one in level if isinstance(one, dict) for inner in one.values()]
        depth += 1
    return depth


def _require_lab(lab: Record) -> None:
    """What the outline of report.json leaves open and a comparison needs."""
    where = f"{REPORT}: {lab['name']}"
    require(lab.get("facts", []), Some(_FACT), f"{where}: facts")
    require(lab.get("swaps", []), Some(_SWAP), f"{where}: swaps")
    for kind, records in (("check", lab["checks"]), ("control", lab["controls"]), ("fact", lab.get("facts", []))):
        keys = Counter((record["name"], record.get("kind")) for record in records)
        doubled = [name for (name, _), times in keys.items() if times > 1]
        if doubled:
            raise DamagedBundle(f"{where}: {kind} {shown(doubled[0])} is reported twice")
    for record in lab["checks"]:
        stated = {key: record[key] for key in _NUMBERS} | (record["tolerance"] or {})
        for key in (*_NUMBERS, *(("atol", "rtol") if record["tolerance"] else ())):
            _require_number(stated[key], f"{where}: {shown(record['name'])}: {key}")


def _require_number(value: object, where: str) -> None:
    try:
        float(str(value or 0))
    except ValueError:
        raise DamagedBundle(f"{where}: got {value!r}, expected a number") from None


def _config(path: Path, name: str) -> Record:
    try:
        found = read_yaml(plain_file(path, f"{name}/config.yaml"), f"{name}/config.yaml").value
    except FileNotFoundError:
        raise DamagedBundle(f"{name}/config.yaml: missing") from None
    if not isinstance(found, dict):
        raise DamagedBundle(f"{name}/config.yaml: not keys and values")
    return found


def _whole(path: Path, entries: Sequence[Entry], read: Collection[str]) -> None:
    """Every file that is compared is there in its size, those in `read` unchanged; arrays wait until they are read."""
    for name in sorted(set(read) - {entry.path for entry in entries}):
        raise DamagedBundle(f"{name}: not listed in {MANIFEST}")
    for entry in sorted(entries, key=lambda entry: entry.path not in read):
        if "/controls/" in entry.path:  # many, and compared by what the report says of them
            continue
        wrong = complaint(path, entry, contents=entry.path in read)
        if wrong:
            raise DamagedBundle(wrong)


def _inputs(entries: Iterable[Entry]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for entry in entries:
        config, _, rest = entry.path.partition("/inputs/")
        if rest:
            found.setdefault(config, {})[rest.removesuffix(".npy")] = entry.sha256
    return found
