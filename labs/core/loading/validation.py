"""Values checked against a config dataclass: pydantic finds what is wrong, this module says it in one sentence each.

The dataclass is the only description. Its hints (int, float, bool, str, Literal, tuple, dict with text keys, nested
dataclasses, any of them or None) and the bounds of `labs.core.setting` become a strict pydantic model; the bounds of a
tuple hold for each of its numbers.
"""

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import pydantic

from labs.core.errors import RequestError
from labs.core.loading.nearest import nearest
from labs.core.loading.strict_yaml import KeyPath
from labs.core.loading.yaml_text import flow, quoted

T = TypeVar("T")
Label: TypeAlias = Callable[[KeyPath], str]
Hint: TypeAlias = Any  # int, tuple[float, ...], Literal["a"]: there is no type for types

SHOWN_ERRORS = 20
SHOWN_WIDTH = 60
_PREFIX = "field_"  # pydantic's own attributes (copy, schema, …) are names that a lab may use
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
_NUMBERS = (int, float)
_NAMES = {int: "an integer", float: "a finite number", bool: "true or false", str: "a text", types.NoneType: "null"}


def checked(cls: type[T], tree: Mapping[str, Any], label: Label) -> T:
    """Build the dataclass from plain nested values; `label` says where a key came from.

    Raises RequestError with one sentence a line: every problem, or the first SHOWN_ERRORS and how many more.
    """
    try:
        return _instance(cls, model(cls).model_validate(tree))
    except pydantic.ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        unknown = {_place(tree, p) for p in problems if p["type"] == "extra_forbidden"}
        places = list(dict.fromkeys(_place(tree, p) for p in problems))  # a union reports each of its members
        lines = [_sentence(cls, tree, path, label, unknown=path in unknown) for path in places[:SHOWN_ERRORS]]
        raise RequestError(in_lines(lines, len(places))) from error


def in_lines(sentences: Sequence[str], count: int) -> str:
    """One sentence a line, and how many of `count` are left out."""
    more = [f"and {count - len(sentences)} more like these"] if count > len(sentences) else []
    return "\n".join([*sentences, *more])


def model(cls: type[Any]) -> type[pydantic.BaseModel]:
    """Make the strict pydantic model of a dataclass. Raises RequestError for a hint that a config can't hold."""
    hashable: Hint = cls
    return _model(hashable)


@functools.cache
def _model(cls: type[Any]) -> type[pydantic.BaseModel]:
    config = pydantic.ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    found, fields = hints(cls), dict[str, Any]()
    for field in dataclasses.fields(cls):
        try:
            hint = _typed(found[field.name], field.metadata.get("bounds", {}))
        except TypeError as error:
            raise RequestError(f"{cls.__module__}.{cls.__qualname__}.{field.name}: {error}") from error
        fields[_PREFIX + field.name] = (hint, _field(field))
    made: type[pydantic.BaseModel] = pydantic.create_model(cls.__name__, __config__=config, **fields)
    return made


def default_of(field: "dataclasses.Field[Any]") -> object:
    """Return the default of a dataclass field as plain values, dataclasses.MISSING when it has none."""
    value = field.default
    if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def expected(hint: Hint, bounds: Mapping[str, float]) -> str:
    """Say what a value of this type and these bounds looks like: "an integer >= 1"."""
    origin, args = _parts(hint)
    if origin is Literal:
        return f"one of {', '.join(map(flow, args))}" if len(args) > 1 else flow(args[0])
    if _is_union(hint):
        return " or ".join(expected(inner, bounds) for inner in args)
    if origin is tuple and args[-1] is Ellipsis:
        return f"a list, each element {expected(args[0], bounds)}"
    if origin is tuple:
        return f"a list of {len(args)}: {', '.join(expected(inner, bounds) for inner in args)}"
    limits = [f"{_SIGNS[key]} {limit}" for key, limit in bounds.items()] if hint in _NUMBERS else []
    return f"{_NAMES.get(hint, 'a mapping')} {' and '.join(limits)}".strip()


def shown(value: object) -> str:
    """Show a value that was found, on one line and cut short."""
    if value is None:
        return "nothing"
    text = quoted(value) if isinstance(value, str) else "a mapping" if isinstance(value, Mapping) else flow(value)
    return text if len(text) <= SHOWN_WIDTH else text[:SHOWN_WIDTH] + "…"


def _instance(cls: type[T], found: pydantic.BaseModel) -> T:
    """Build the dataclass itself; what was not given keeps the dataclass's own default."""
    return cls(**{name.removeprefix(_PREFIX): getattr(found, name) for name in found.model_fields_set})


def _field(field: "dataclasses.Field[Any]") -> object:
    default: Any = default_of(field)
    required = default is dataclasses.MISSING
    optional: Any = None  # not the default itself: the dataclass fills that in
    return pydantic.Field(
        ... if required else optional,
        alias=field.name,
        title=field.name,
        description=field.metadata.get("doc"),
        json_schema_extra={} if required else {"default": default},
    )


def _typed(hint: Hint, bounds: Mapping[str, float]) -> Hint:
    origin, args = _parts(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return Annotated[model(hint), pydantic.AfterValidator(functools.partial(_instance, hint))]
    if _is_union(hint):
        return functools.reduce(operator.or_, (_typed(inner, bounds) for inner in args))
    if origin in (tuple, dict):
        return types.GenericAlias(origin, tuple(a if a is Ellipsis else _typed(a, bounds) for a in args))
    if origin is Literal:
        return Annotated[hint, pydantic.BeforeValidator(functools.partial(_choice, args))]
    if hint in _NUMBERS:
        return Annotated[hint, pydantic.Field(**dict[str, Any](bounds))]
    if hint not in _NAMES:
        raise TypeError(f"a config can't hold a {getattr(hint, '__name__', hint)}")
    return hint


def _choice(choices: tuple[object, ...], value: object) -> object:
    """Refuse what only equals a choice: true and 1.0 are not 1."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError
    return value


def _place(tree: object, problem: Mapping[str, Any]) -> KeyPath:
    """Return the key that a problem is about: pydantic's location without the names of union members."""
    path: KeyPath = ()
    value: Any = tree
    for part in problem["loc"]:
        inside = isinstance(value, Mapping) and part in value
        if inside or (isinstance(value, tuple) and isinstance(part, int) and part < len(value)):
            path, value = (*path, part), value[part]
    lacks_key = problem["type"] == "missing" and isinstance(value, Mapping)
    return (*path, problem["loc"][-1]) if lacks_key else path


def _sentence(cls: type[Any], tree: object, path: KeyPath, label: Label, *, unknown: bool) -> str:
    parent, _ = _hint_at(cls, path[:-1])
    if unknown:
        known = [field.name for field in dataclasses.fields(parent)] if dataclasses.is_dataclass(parent) else []
        return f"{label(path)}: unknown key{nearest(str(path[-1]), known)}"
    found = functools.reduce(inside, path, tree)
    what = "missing" if found is dataclasses.MISSING else f"got {shown(found)}"
    return f"{label(path)}: {what}, expected {expected(*_hint_at(cls, path))}"


def inside(value: object, part: str | int) -> object:
    """Step into a mapping or a tuple; dataclasses.MISSING where there is nothing of that name."""
    if isinstance(value, Mapping):
        return value.get(part, dataclasses.MISSING)
    return value[part] if isinstance(value, tuple) and isinstance(part, int) else dataclasses.MISSING


def _hint_at(cls: Hint, path: KeyPath) -> tuple[Hint, Mapping[str, float]]:
    hint = cls
    bounds: Mapping[str, float] = {}
    for part in path:
        if _is_union(hint):
            hint = next(inner for inner in typing.get_args(hint) if inner is not types.NoneType)
        origin, args = _parts(hint)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            fields = {field.name: field for field in dataclasses.fields(hint)}
            hint, bounds = hints(hint)[str(part)], fields[str(part)].metadata.get("bounds", {})
        elif origin is dict:
            hint = args[1]
        else:
            hint = args[0] if args[-1] is Ellipsis else args[int(part)]
    return hint, bounds


def hints(cls: type[Any]) -> dict[str, Any]:
    """Type hints of a dataclass. Raises RequestError when a name in them is not there at run time."""
    try:
        return typing.get_type_hints(cls)
    except NameError as error:
        raise RequestError(f"{cls.__module__}.{cls.__qualname__}: {error} where its types are looked up") from error


def _parts(hint: Hint) -> tuple[Hint, tuple[Hint, ...]]:
    return typing.get_origin(hint), typing.get_args(hint)


def _is_union(hint: Hint) -> bool:
    return _parts(hint)[0] in (typing.Union, types.UnionType)
