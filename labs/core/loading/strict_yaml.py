"""A safe and strict subset of YAML, with the line of every key.

Differences from YAML 1.1: only `true` and `false` are booleans (`off` is a text), `1e-9`, `1E5` and `.5` are numbers,
nothing is octal, sexagesimal or a date. Refused: duplicate keys, keys that are not texts, anchors, aliases, tags, merge
keys, a second document, and whatever is too large, too deep or too much to be a config. Sequences become tuples.
"""

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from labs.core.errors import RequestError

KeyPath: TypeAlias = tuple[str | int, ...]

SIZE_LIMIT = 1 << 20  # bytes
DEPTH_LIMIT = 20
VALUE_LIMIT = 10_000  # values and keys: a large file of tiny values would take many seconds
INTEGER_BITS = 64

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # neither a path nor a UTF-8 file can hold them


@dataclass(frozen=True)
class Document:
    """What a text says, and the line (from 1) of every key and element in it."""

    value: Any  # dict, tuple, str, int, float, bool or None
    lines: dict[KeyPath, int]


@dataclass(frozen=True)
class _Source:
    """Where sentences point to; `numbered` is False for a single value from the command line."""

    name: str
    numbered: bool
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def refusal(self, line: int, column: int | None, sentence: str) -> RequestError:
        """Build an error that points to a line and a column, both counted from 1."""
        place = f":{line}" + (f":{column}" if column else "") if self.numbered else ""
        return RequestError(f"{self.name}{place}: {sentence}")

    def at(self, mark: Any, sentence: str) -> RequestError:
        """Build an error that points to a mark of the parser, which counts from 0."""
        return self.refusal(mark.line + 1, mark.column + 1, sentence)


def read(path: Path, name: str) -> Document:
    """Read a YAML file; `name` is how sentences call it. Raises RequestError; only regular files are opened."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise RequestError(f"{name}: not a regular file")
        if status.st_size > SIZE_LIMIT:
            raise RequestError(f"{name}: {status.st_size} bytes, a config has at most {SIZE_LIMIT}")
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)  # it may have grown since
    except (OSError, ValueError) as error:
        raise RequestError(f"{name}: {getattr(error, 'strerror', None) or error}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RequestError(f"{name}:{line}: not UTF-8: byte 0x{data[error.start]:02x}") from error
    return parse(text, name)


def parse(text: str, name: str, *, numbered: bool = True) -> Document:
    """Parse one YAML document; an empty one has the value None. Raises RequestError with line and column."""
    source = _Source(name, numbered)
    if len(text) > SIZE_LIMIT:
        raise RequestError(f"{name}: longer than {SIZE_LIMIT} characters")
    try:
        return Document(_document(_counted(text, source), source), source.lines)
    except yaml.MarkedYAMLError as error:
        raise source.at(error.problem_mark or error.context_mark, _broken(error)) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = len(before) - before.rfind("\n")
        sentence = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise source.refusal(before.count("\n") + 1, column, sentence) from error
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, a version of thousands of digits
        raise RequestError(f"{name}: broken YAML: {error}") from error


def _broken(error: yaml.MarkedYAMLError) -> str:
    if "'\\t'" in str(error.problem):
        return "broken YAML: a tab can't indent or start a value, use spaces"
    context = f" {error.context}" if error.context and error.context.startswith("while") else ""
    return f"broken YAML{context}: {error.problem}"


def _counted(text: str, source: _Source) -> Iterator[Any]:
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if count > VALUE_LIMIT:
            raise source.at(event.start_mark, f"more than {VALUE_LIMIT} keys and values")
        yield event


def _document(events: Iterator[Any], source: _Source) -> object:
    value: object = None
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise source.at(event.start_mark, "a second document starts here; a config is one document")
            value = _value(next(events), events, source, ())
    return value


def _value(event: yaml.Event, events: Iterator[Any], source: _Source, path: KeyPath) -> object:
    """Build the value that `event` starts; recursion is bounded by DEPTH_LIMIT before it can hurt."""
    _refuse_extras(event, source)
    if len(path) > DEPTH_LIMIT:
        raise source.at(event.start_mark, f"nested more than {DEPTH_LIMIT} levels deep")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event, source)
    if isinstance(event, yaml.SequenceStartEvent):
        return _sequence(events, source, path)
    return _mapping(events, source, path)


def _refuse_extras(event: yaml.Event, source: _Source) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise source.at(
            event.start_mark, f'aliases are not supported; a text that starts with * needs quotes: "*{event.anchor}…"'
        )
    if getattr(event, "anchor", None) is not None:
        raise source.at(event.start_mark, "anchors are not supported; a text that starts with & needs quotes")
    if getattr(event, "tag", None) is not None:
        raise source.at(event.start_mark, "tags are not supported; a text that starts with ! needs quotes")


def _sequence(events: Iterator[Any], source: _Source, path: KeyPath) -> tuple[Any, ...]:
    values: list[Any] = []
    for event in events:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        here = (*path, len(values))
        source.lines[here] = event.start_mark.line + 1
        values.append(_value(event, events, source, here))
    return tuple(values)


def _mapping(events: Iterator[Any], source: _Source, path: KeyPath) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _key(event, source)
        here = (*path, key)
        line = event.start_mark.line + 1
        if key in values:
            dotted = ".".join(map(str, here))
            raise source.refusal(line, None, f"{dotted}: given twice, on lines {source.lines[here]} and {line}")
        source.lines[here] = line
        values[key] = _value(next(events), events, source, here)
    return values


def _key(event: yaml.Event, source: _Source) -> str:
    _refuse_extras(event, source)
    if not isinstance(event, yaml.ScalarEvent):
        raise source.at(event.start_mark, "a key has to be a text, found a list or a mapping")
    if event.style is None and event.value == "<<":
        raise source.at(event.start_mark, "merge keys (<<) are not supported")
    key = _scalar(event, source)
    if not isinstance(key, str):
        raise source.at(event.start_mark, f"a key has to be a text, found {event.value or 'nothing'}; quote it")
    return key


def _scalar(event: yaml.ScalarEvent, source: _Source) -> object:
    text: str = event.value
    if event.style is not None:  # quoted, or a block
        return _text(text, event, source)
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text, event, source)
    if _NUMBER.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return _text(text, event, source)


def _integer(text: str, event: yaml.ScalarEvent, source: _Source) -> int:
    short = len(text) <= INTEGER_BITS
    value = int(text) if short else 0  # Python itself refuses thousands of digits
    if not short or not -(2 ** (INTEGER_BITS - 1)) <= value < 2 ** (INTEGER_BITS - 1):
        raise source.at(event.start_mark, f"an integer of more than {INTEGER_BITS} bits; write a large number as 1e20")
    return value


def _text(text: str, event: yaml.ScalarEvent, source: _Source) -> str:
    unusable = _UNUSABLE.search(text)
    if unusable:
        raise source.at(event.start_mark, f"a text can't hold the character U+{ord(unusable.group()):04X}")
    return text
