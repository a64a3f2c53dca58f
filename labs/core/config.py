"""What a run is asked to compute: a YAML file, the changes to it, and the lab's config dataclass, all validated.

Run-level keys (`lab`, `seed`, `threads`, `save`, `tolerances`) and the lab's own keys stand side by side in one file.
"""

import dataclasses
import functools
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import labs
from labs.core import registry
from labs.core.errors import RequestError
from labs.core.items import Tolerance
from labs.core.lab import Lab
from labs.core.loading import strict_yaml, validation
from labs.core.loading.nearest import nearest
from labs.core.loading.strict_yaml import KeyPath
from labs.core.loading.yaml_text import dump
from labs.core.setting import setting
from labs.core.stored_inputs import Stored

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """Everything a YAML file says; `name` names the folder in the bundle, `config` is an instance of lab.config."""

    name: str
    lab: Lab
    config: Any
    seed: int
    threads: int
    save: str
    tolerances: tuple[tuple[str, Tolerance], ...]
    from_files: Mapping[str, Stored] = field(default_factory=dict)


@dataclass(frozen=True)
class Loosened:
    """One entry of `tolerances:`."""

    atol: float = setting(Tolerance().atol, "absolute part of the limit", ge=0)
    rtol: float = setting(Tolerance().rtol, "part of the limit relative to the reference", ge=0)
    reason: str = field(metadata={"doc": "why the default does not do"}, kw_only=True)


@dataclass(frozen=True)
class _RunKeys:
    """The keys that every config has."""

    lab: str = field(metadata={"doc": "a shipped lab, or the path of a lab folder from here"})
    seed: int = setting(0, "seed of the inputs", ge=0)
    threads: int = setting(1, "threads of torch in each framework process", ge=1, le=1024)
    save: Literal["all", "failing", "none"] = setting("all", "which arrays the bundle keeps")
    tolerances: dict[str, Loosened] = field(
        default_factory=dict,
        metadata={"doc": 'by item pattern, the first match counts: "trained/*": {atol: 1e-8, rtol: 1e-8, reason: "…"}'},
    )
    from_files: dict[str, Stored] = field(
        default_factory=dict,
        metadata={"doc": "inputs taken from files: base: {file: model.safetensors, name: q_proj.weight}"},
    )


@dataclass(frozen=True)
class _Origin:
    """Where a value comes from; `key` is what the text says already of a key."""

    text: str
    key: KeyPath = ()

    def label(self, path: KeyPath) -> str:
        rest = path[len(self.key) :]
        return f"{self.text}: {_dotted(rest)}" if rest else self.text


@dataclass(frozen=True)
class _Draft:
    """Values on their way to Settings, not validated yet, with the origin of each key that was given."""

    name: str
    lab: Lab
    source: _Origin
    tree: Any
    origins: dict[KeyPath, _Origin] = field(default_factory=dict)

    def label(self, path: KeyPath) -> str:
        """Return the start of a sentence about a key: the place of the key, or of the nearest key around it."""
        around = (path[:cut] for cut in range(len(path), 0, -1))
        return next((self.origins[p] for p in around if p in self.origins), self.source).label(path)

    def changed(self, key: KeyPath, document: strict_yaml.Document, origin: _Origin) -> "_Draft":
        """Return a copy with a value laid over what stands at `key`: mappings merge, everything else is replaced."""
        given = {key: origin, **{(*key, *path): origin for path in document.lines}}
        for cut in range(1, len(key)):
            if not isinstance(functools.reduce(validation.inside, key[:cut], self.tree), dict):
                given[key[:cut]] = origin  # this change makes it a mapping
        nested = functools.reduce(lambda value, part: {part: value}, reversed(key), document.value)
        return dataclasses.replace(self, tree=_merged(self.tree, nested), origins=self.origins | given)


def resolve(name: str, changes: Sequence[str] = (), seed: int | None = None, threads: int | None = None) -> Settings:
    """Settings of a shipped config's name, a YAML file or a lab folder, with changes ("rank=1", "steps=3").

    Raises RequestError: one sentence a problem, with the file and line or the change that it stems from.
    """
    path = registry.locate(name)
    draft = _from_folder(path) if path.is_dir() else _from_file(path)
    for change in changes:
        draft = _with_change(draft, change)
    for key, value in (("seed", seed), ("threads", threads)):
        if value is not None:
            draft = _with_value(draft, (key,), str(value), f"--{key} {value}")
    return _settings(draft)


def default(lab: Lab, at: Mapping[str, Any] | None = None) -> Any:
    """Build the lab's default config with the dotted keys of `at` replaced, validated. Raises RequestError."""
    draft = _defaults(lab.name, lab, lab.name)
    for key, value in (at or {}).items():
        draft = draft.changed(tuple(key.split(".")), strict_yaml.Document(value, {}), draft.source)
    return _settings(draft).config


def changed(config: T, changes: Mapping[str, Any]) -> T:
    """Replace dotted keys and check no value: a lie may be what the config forbids. RequestError for no such key."""
    for key, value in changes.items():
        first, _, rest = key.partition(".")
        known = [field.name for field in dataclasses.fields(config)]  # type: ignore[arg-type]
        if first not in known:
            raise RequestError(f"controls.py: lie: there is no config key {first!r}{nearest(first, known)}")
        inner = changed(getattr(config, first), {rest: value}) if rest else value
        config = dataclasses.replace(config, **{first: inner})  # type: ignore[type-var]
    return config


def to_yaml(settings: Settings) -> str:
    """Write every value, defaults included; `resolve` gives equal settings from a file of the same name."""
    return dump(_tree(settings))


def commented_yaml(settings: Settings) -> str:
    """Write a config with a comment above each key: its sentence, unit and bounds."""
    return f"# {settings.lab.title}\n" + dump(_tree(settings), dict(_comments(_file(settings.lab), ())))


def schema(lab: Lab) -> dict[str, Any]:
    """JSON schema of a config file of this lab, for editors."""
    made = validation.model(_file(lab)).model_json_schema()
    made["properties"]["lab"]["default"] = _lab_key(lab)
    if not registry.is_path(_lab_key(lab)):
        made["properties"]["lab"]["const"] = _lab_key(lab)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": f"{lab.name}: {lab.title}"}


def _defaults(name: str, lab: Lab, source: str) -> _Draft:
    try:
        values = dataclasses.asdict(lab.config())
    except TypeError as error:
        raise RequestError(f"{source}: every key of the config needs a default: {error}") from error
    return _Draft(name, lab, _Origin(source), {"lab": _lab_key(lab), **values})


def _from_folder(path: Path) -> _Draft:
    return _defaults(
        _run_name(path.resolve().name), registry.load(str(path) if path.is_absolute() else f"./{path}"), str(path)
    )


def _from_file(path: Path) -> _Draft:
    shown = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    document = strict_yaml.read(path, shown)
    lab = _load_lab(document, path, shown)
    # A bundle keeps its config as <name>/config.yaml: run again, it keeps its name.
    name = path.resolve().parent.name if path.stem == "config" else path.stem
    draft = _defaults(_run_name(name), lab, shown)
    origins = {key: _Origin(f"{shown}:{line}") for key, line in document.lines.items()}
    return dataclasses.replace(draft, tree=_merged(draft.tree, document.value), origins=origins)


def _load_lab(document: strict_yaml.Document, path: Path, shown: str) -> Lab:
    if not isinstance(document.value, dict):
        what = "empty" if document.value is None else f"got {validation.shown(document.value)}"
        raise RequestError(f"{shown}: {what}, expected keys and values that start with lab: NAME")
    if "lab" not in document.value:
        raise RequestError(f"{shown}: lab: missing, expected the name of a lab{nearest('', labs.NAMES)}")
    name, place = document.value["lab"], f"{shown}:{document.lines[('lab',)]}: lab"
    if not isinstance(name, str) or not name:
        raise RequestError(f"{place}: got {validation.shown(name)}, expected the name of a lab or a lab folder")
    try:
        return registry.load(str(path.parent.resolve() / name) if registry.is_path(name) else name)
    except RequestError as error:
        raise RequestError(f"{place}: {error}") from error


def _with_change(draft: _Draft, change: str) -> _Draft:
    text, (key, equals, value) = f"--set {change}", change.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        raise RequestError(f"{text}: expected KEY=VALUE, such as seed=3 or sgd.steps=2")
    if path == ("lab",):
        raise RequestError(f"{text}: the lab of a config can't be changed, name another config")
    return _with_value(draft, path, value, text)


def _with_value(draft: _Draft, path: KeyPath, value: str, text: str) -> _Draft:
    return draft.changed(path, strict_yaml.parse(value, text, numbered=False), _Origin(text, path))


def _settings(draft: _Draft) -> Settings:
    found: Any = validation.checked(_file(draft.lab), draft.tree, draft.label)
    names = [f.name for f in dataclasses.fields(draft.lab.config)]
    config = draft.lab.config(**{name: getattr(found, name) for name in names})
    problems = [*_unreasoned(found), *((tuple(key.split(".")), text) for key, text in draft.lab.problems(config))]
    if problems:
        lines = [f"{draft.label(path)}: {text}" for path, text in problems]
        raise RequestError(validation.in_lines(lines[: validation.SHOWN_ERRORS], len(lines)))
    tolerances = tuple((key, Tolerance(t.atol, t.rtol, t.reason)) for key, t in found.tolerances.items())
    tensors = {name: dataclasses.replace(s, file=str(Path(s.file).absolute())) for name, s in found.from_files.items()}
    return Settings(draft.name, draft.lab, config, found.seed, found.threads, found.save, tolerances, tensors)


def _unreasoned(keys: _RunKeys) -> list[tuple[KeyPath, str]]:
    blank = [pattern for pattern, entry in keys.tolerances.items() if not entry.reason.strip()]
    return [(("tolerances", pattern, "reason"), "empty, expected why the default does not do") for pattern in blank]


def _file(lab: Lab) -> type[Any]:
    config: validation.Hint = lab.config
    return _file_of(config)


@functools.cache
def _file_of(config: type[Any]) -> type[Any]:
    """Make the dataclass of a whole file: the run-level keys, then the lab's."""
    run, own = dataclasses.fields(_RunKeys), dataclasses.fields(config)
    taken = {f.name for f in run} & {f.name for f in own}
    if taken:
        raise RequestError(
            f"{config.__module__}.{config.__qualname__}: {', '.join(sorted(taken))}: reserved for the run"
        )
    hints = typing.get_type_hints(_RunKeys) | validation.hints(config)
    rows = [(f.name, hints[f.name], _copied(f)) for f in (*run, *own)]
    return dataclasses.make_dataclass(config.__name__, rows, kw_only=True, frozen=True)


def _copied(old: "dataclasses.Field[Any]") -> object:
    if old.default_factory is not dataclasses.MISSING:
        return field(default_factory=old.default_factory, metadata=old.metadata)
    return field(default=old.default, metadata=old.metadata)


def _tree(settings: Settings) -> dict[str, Any]:
    run = {"lab": _lab_key(settings.lab), "seed": settings.seed, "threads": settings.threads, "save": settings.save}
    tolerances = {pattern: dataclasses.asdict(tolerance) for pattern, tolerance in settings.tolerances}
    tensors = {name: dataclasses.asdict(stored) for name, stored in settings.from_files.items()}
    return {**run, "tolerances": tolerances, "from_files": tensors, **dataclasses.asdict(settings.config)}


def _lab_key(lab: Lab) -> str:
    shipped = not lab.package or lab.package.startswith("labs.")
    return lab.name if shipped else str(lab.path)


def _comments(cls: type[Any], path: tuple[str, ...]) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    hints = validation.hints(cls)
    for f in dataclasses.fields(cls):
        here, hint = (*path, f.name), hints[f.name]
        found[here] = _comment(f, hint)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            found |= _comments(hint, here)
    return found


def _comment(f: "dataclasses.Field[Any]", hint: validation.Hint) -> str:
    doc, unit = f.metadata.get("doc", ""), f.metadata.get("unit", "")
    allowed = validation.expected(hint, f.metadata.get("bounds", {}))
    facts = "" if allowed == "a mapping" else f"({allowed}, in {unit})" if unit else f"({allowed})"
    return f"{doc} {facts}".strip()


def _run_name(stem: str) -> str:
    """Make a name that is safe as a folder of the bundle: no dots, because files of its own stand beside it."""
    return re.sub(r"[^\w-]+", "-", stem)[:100].strip("-") or "config"


def _merged(old: object, new: object) -> object:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: _merged(old.get(key), value) for key, value in new.items()}
    return new


def _dotted(path: KeyPath) -> str:
    return ".".join(map(str, path))
